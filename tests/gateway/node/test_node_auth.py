"""Nobody but a node can say who sent a request, and nobody can say it again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.node.node_auth import (
    FRESH_S,
    NodeAuth,
    SignatureError,
    Signed,
    new_secret,
    new_session,
)

SECRET = "a secret of the cluster"
HERE = "127.0.0.1:9876"
BODY = b"a whole request"


class Clock:
    def __init__(self, now_ms=1_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def pair():
    clock = Clock()
    return NodeAuth(SECRET, clock), NodeAuth(SECRET, clock), clock


def said(sender, number=0, session="s", to=HERE, principal='{"name":"alice"}'):
    return sender.say("192.0.2.1:5", to, session, number, principal)


def test_what_a_node_says_is_believed_once():
    sender, receiver, _ = pair()
    for number in range(3):
        one = said(sender, number)
        receiver.check(one, BODY, sender.sign(one, BODY), HERE)
        with pytest.raises(SignatureError, match="before"):
            receiver.check(one, BODY, sender.sign(one, BODY), HERE)


def test_numbers_of_a_session_only_go_up():
    sender, receiver, _ = pair()
    late, early = said(sender, 1), said(sender, 2)
    receiver.check(early, BODY, sender.sign(early, BODY), HERE)
    with pytest.raises(SignatureError, match="before"):
        receiver.check(late, BODY, sender.sign(late, BODY), HERE)
    other = said(sender, 0, session="another")
    receiver.check(other, BODY, sender.sign(other, BODY), HERE)


@pytest.mark.parametrize(
    "change",
    [
        {"client": "192.0.2.2:5"},
        {"to": "127.0.0.1:1"},
        {"session": "t"},
        {"number": 7},
        {"signed_ms": 1_000_001},
        {"principal": '{"name":"root"}'},
        {"principal": None},
    ],
)
def test_nothing_under_a_signature_can_be_changed(change):
    sender, receiver, _ = pair()
    one = said(sender)
    signature = sender.sign(one, BODY)
    with pytest.raises(SignatureError, match="no signature"):
        receiver.check(msgspec.structs.replace(one, **change), BODY, signature, HERE)
    with pytest.raises(SignatureError, match="no signature"):
        receiver.check(one, BODY + b"x", signature, HERE)


@given(st.text())
def test_no_other_text_is_a_signature(text):
    sender, receiver, _ = pair()
    with pytest.raises(SignatureError, match="no signature"):
        receiver.check(said(sender), BODY, text, HERE)


def test_another_secret_is_another_cluster():
    sender, receiver = NodeAuth(new_secret(), Clock()), NodeAuth(new_secret(), Clock())
    one = said(sender)
    with pytest.raises(SignatureError, match="no signature"):
        receiver.check(one, BODY, sender.sign(one, BODY), HERE)


def test_a_signature_for_one_node_opens_no_other():
    sender, receiver, _ = pair()
    one = said(sender)
    with pytest.raises(SignatureError, match="signed for"):
        receiver.check(one, BODY, sender.sign(one, BODY), "127.0.0.1:1")


@pytest.mark.parametrize("apart_s", [FRESH_S + 1, -FRESH_S - 1])
def test_an_old_signature_and_one_of_the_future_are_refused(apart_s):
    sender, receiver, clock = pair()
    one = said(sender)
    clock.now_ms += int(apart_s * 1000)
    with pytest.raises(SignatureError, match="clocks must agree"):
        receiver.check(one, BODY, sender.sign(one, BODY), HERE)


def test_what_was_signed_before_the_start_is_refused():
    clock = Clock()
    sender = NodeAuth(SECRET, clock)
    one = said(sender)
    clock.now_ms += 1000
    with pytest.raises(SignatureError, match="before this node started"):
        NodeAuth(SECRET, clock).check(one, BODY, sender.sign(one, BODY), HERE)


def test_sessions_are_forgotten_when_their_signatures_are_worth_nothing():
    sender, receiver, clock = pair()
    for number in range(500):
        one = said(sender, session=new_session())
        receiver.check(one, BODY, sender.sign(one, BODY), HERE)
        clock.now_ms += 1000
        assert len(receiver._sessions) <= 2 * FRESH_S + 1, number


def test_a_signature_does_not_show_its_secret():
    assert SECRET not in repr(NodeAuth(SECRET))
    assert msgspec.structs.asdict(Signed("c", "t", "s", 0, 0))["principal"] is None


def test_a_channel_is_believed_of_its_own_request_alone():
    sender, receiver, _ = pair()
    mine, other = (sender.sign(said(sender, number), BODY) for number in range(2))
    made = sender.sign_channel(mine, "http")
    receiver.check_channel(mine, "http", made)
    for signature, channel, given_ in (
        (other, "http", made),
        (mine, "grpc", made),
        (mine, "http", mine),
        (mine, "http", "\udc80"),
    ):
        with pytest.raises(SignatureError, match="channel"):
            receiver.check_channel(signature, channel, given_)
