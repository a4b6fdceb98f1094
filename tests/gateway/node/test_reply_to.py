"""Who waits for a reply is believed by the signature of the cluster alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.acl.api import Principal
from ropeway.gateway.node.node_auth import NodeAuth
from ropeway.gateway.node.reply_to import (
    VALID_MS,
    ReplyAddresses,
    ReplyTo,
    ReplyToError,
)

SECRET = "a secret of the cluster"
ALICE = Principal("alice", "users")
CLIENT = "192.0.2.1@4711!x"


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def made(secret=SECRET):
    clock = Clock()
    return ReplyAddresses(secret, clock), clock


@given(st.text(), st.text(), st.text(), st.text())
def test_what_was_signed_is_read_by_every_node(client_id, correlation_id, hook, name):
    principal = Principal(name, hook)
    address = made()[0].sign(client_id, correlation_id, principal)
    other, _ = made()
    found = other.verify(address, correlation_id)
    assert found == ReplyTo(client_id, other.owner(principal))


@given(st.data())
def test_nothing_of_an_address_can_be_changed(data):
    addresses, _ = made()
    address = addresses.sign(CLIENT, "c1", ALICE)
    at = data.draw(st.integers(0, len(address) - 1))
    # No request brings half of a surrogate pair: what is no UTF-8 is not decoded.
    other = data.draw(
        st.characters(codec="utf-8").filter(lambda one: one != address[at])
    )
    for changed in (address[:at] + other + address[at + 1 :], address[:at], ""):
        with pytest.raises(ReplyToError, match="allowed: both as they came"):
            addresses.verify(changed, "c1")
    with pytest.raises(ReplyToError):
        addresses.verify(address, "c2")
    with pytest.raises(ReplyToError):
        made("another secret")[0].verify(address, "c1")


def test_what_an_address_shows_signs_no_other():
    addresses, _ = made()
    # The owner's tag is an HMAC, too: of a hook and a name that an attacker may choose.
    for hook, name in (("users", "c1"), (CLIENT, "c1"), ("", "c1")):
        tag = addresses.owner(Principal(name, hook))
        for signed in (f"{hook}!{tag}", f"{hook}!1!!{tag}", tag, f"!!!{tag}"):
            with pytest.raises(ReplyToError):
                addresses.verify(signed, "c1")
    assert addresses.owner(ALICE) != NodeAuth(SECRET).sign(
        NodeAuth(SECRET).say("users", "alice", "", 0, None), b""
    )


def test_an_address_holds_for_a_day():
    addresses, clock = made()
    address = addresses.sign(CLIENT, "c1", ALICE)
    clock.now_ms += VALID_MS
    assert addresses.verify(address, "c1").client_id == CLIENT
    clock.now_ms += 1
    with pytest.raises(ReplyToError, match="sent 24 hours ago; allowed: 24"):
        addresses.verify(address, "c1")


def test_neither_secret_nor_principal_shows():
    addresses, _ = made()
    assert repr(addresses) == "ReplyAddresses()"
    assert "alice" not in addresses.sign(CLIENT, "c1", ALICE)
