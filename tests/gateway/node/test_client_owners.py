"""Client ids belong to the principal that registered them."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway.acl.api import Principal
from ropeway.gateway.node.client_owners import ClientOwners, TakenError, is_same

ALICE = Principal("alice", "users")
BOB = Principal("bob", "users")


def links(count: int) -> list[Any]:
    return [object() for _ in range(count)]


def test_an_id_is_its_principals_on_any_number_of_connections():
    owners = ClientOwners()
    one, two, other = links(3)
    owners.claim(one, "c", ALICE)
    owners.claim(two, "c", Principal("alice", "users", rule="another password"))
    for stranger in (BOB, Principal("alice", "plain"), None):
        with pytest.raises(TakenError, match="client id c is in use"):
            owners.claim(other, "c", stranger)
    assert is_same(owners.of("c"), ALICE)


def test_an_id_is_free_when_the_last_connection_of_its_client_is_gone():
    owners = ClientOwners()
    one, two, other = links(3)
    owners.claim(one, "c", ALICE)
    owners.claim(two, "c", ALICE)
    owners.release(one)
    with pytest.raises(TakenError):
        owners.claim(other, "c", BOB)
    owners.release(two)
    owners.claim(other, "c", BOB)
    assert owners.of("c") == BOB
    owners.release(other)
    owners.release(other)
    assert len(owners) == 0


def test_a_connection_may_change_its_principal_and_has_one_id():
    owners = ClientOwners()
    one, other = links(2)
    owners.claim(one, "c", ALICE)
    owners.claim(one, "c", BOB)
    assert owners.of("c") == BOB
    for number in range(100):
        owners.claim(one, f"c{number}", BOB)
    assert len(owners) == 1
    owners.claim(other, "c", ALICE)


def test_a_refused_claim_changes_nothing():
    owners = ClientOwners()
    one, other = links(2)
    owners.claim(one, "c", ALICE)
    owners.claim(other, "d", BOB)
    with pytest.raises(TakenError):
        owners.claim(other, "c", BOB)
    assert (owners.of("c"), owners.of("d")) == (ALICE, BOB)


def test_where_nobody_is_known_nobody_owns_anything():
    owners = ClientOwners()
    one, other = links(2)
    owners.claim(one, "c", None)
    owners.claim(other, "c", None)
    assert len(owners) == 0


def test_a_dry_run_refuses_nobody():
    owners = ClientOwners(dry_run=True)
    one, other = links(2)
    owners.claim(one, "c", ALICE)
    owners.claim(other, "c", BOB)
    owners.check("c", ALICE, BOB)
