"""What a request says of its sender, and what of it is signed."""

from __future__ import annotations

import pytest

from ropeway.gateway.wire.request_credentials import claims_in, signed_values

FIELDS = {"b": "2", "a": "1", "Signature": "s", "AccessKey": "k"}


def test_what_is_signed_is_every_value_by_its_name():
    assert signed_values(FIELDS, 500) == b"k12"


@pytest.mark.parametrize(("version", "values"), [(399, b"1"), (400, b"true1")])
def test_old_clients_sign_before_they_add_a_flag(version, values):
    fields = {"a": "1", "_UNIQUE_KEY_QUERY": "true"}
    assert signed_values(fields, version) == values


def test_what_is_not_given_is_empty():
    assert claims_in(FIELDS, 500) == ("k", "s", "", "", "", b"k12")


@pytest.mark.parametrize("name", ["AccessKey", "Signature", "SecurityToken"])
def test_a_field_of_credentials_is_a_claim_even_where_it_is_empty(name):
    assert claims_in({"a": "1", name: ""}, 500) == ("", "", "", "", "", b"1")


def test_who_gives_no_credentials_claims_nothing():
    assert claims_in({"a": "1", "ns": "tenant", "SignatureMethod": "x"}, 500) is None
