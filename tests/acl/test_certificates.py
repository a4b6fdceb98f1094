"""Certificates as names: of real ones, as Python's ssl describes them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.acl.api import Channel, Credentials, HookError, Principal, Setting, Source
from ropeway.acl.certificates import Certificates, Options, open_hook
from tests.acl.hooks import setting
from tests.gateway.test_tls import issue

if TYPE_CHECKING:
    from pathlib import Path

CERTIFICATE: dict[str, Any] = {
    # As `ssl.SSLSocket.getpeercert` has it.
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "Orders, Inc."),),
        (("commonName", "billing"),),
    ),
    "subjectAltName": (
        ("DNS", "billing.example.com"),
        ("DNS", "b.example.com"),
        ("URI", "spiffe://example.com/billing"),
        ("email", "billing@example.com"),
    ),
}


def who(certificate: dict[str, Any] | None, key: str = "", **options: Any):
    hook = Certificates("certificates", Options(**options))
    source = Source("10.0.0.1", Channel.REMOTING, certificate)
    return hook.authenticate(Credentials(access_key=key), source)


@pytest.mark.parametrize(
    ("name_from", "name"),
    [
        ("CN", "billing"),
        ("subject", r"CN=billing,O=Orders\, Inc.,C=DE"),
        ("DNS", "billing.example.com"),
        ("URI", "spiffe://example.com/billing"),
        ("email", "billing@example.com"),
    ],
)
def test_a_certificate_names_its_client(name_from: str, name: str):
    assert who(CERTIFICATE, name_from=name_from) == Principal(
        name,
        "certificates",
        rule=f"a certificate, by its {name_from}",
        roles=(name,),
    )


def test_who_shows_none_or_gives_an_access_key_is_others_business():
    assert who(None) is None
    assert who(CERTIFICATE, key="AK") is None


@pytest.mark.parametrize("name_from", ["CN", "subject", "DNS", "URI", "email"])
def test_a_certificate_that_names_nobody_is_nobodys(name_from: str):
    assert who({}, name_from=name_from) is None
    empty = {"subject": ((("commonName", ""),),), "subjectAltName": (("DNS", ""),)}
    if name_from != "subject":
        assert who(empty, name_from=name_from) is None


def test_two_common_names_are_none():
    both = {"subject": ((("commonName", "a"),), (("commonName", "admin"),))}
    assert who(both) is None


def test_a_part_of_a_subject_cannot_pass_for_another():
    sly = {"subject": ((("commonName", "x,CN=admin"),),)}
    assert who(sly, name_from="subject").name == r"CN=x\,CN\=admin"


def test_superusers_are_named_exactly():
    assert who(CERTIFICATE, superusers=("billing",)).super
    for other in ("Billing", "billing ", "bill", "b\u0456lling"):
        assert not who(CERTIFICATE, superusers=(other,)).super


def test_what_ssl_says_of_a_real_one_is_understood(tmp_path: Path):
    pair = issue(tmp_path, "orders-app")
    # Python decodes certificates of connections only, or of an authority.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(pair.certificate)
    (described,) = context.get_ca_certs()
    assert who(described).name == "orders-app"
    assert who(described, name_from="subject").name == "CN=orders-app"


@pytest.mark.parametrize(
    "options", [{"name_from": "serial"}, {"superuser": ["a"]}, {"superusers": [""]}]
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any]):
    given: Any = Setting("certificates", options, *[None] * 6)
    with pytest.raises(HookError, match=r"acl\.options\.certificates"):
        open_hook(given)


def test_a_hook_is_found_by_the_names_it_gives():
    hook = open_hook(setting("certificates"))
    assert hook.find is not None
    assert hook.find("billing") == hook.authenticator.find("billing")  # type: ignore[union-attr]
