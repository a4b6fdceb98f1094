"""What a processor may answer, and how it looks on the wire."""

from __future__ import annotations

import pytest

from ropeway.gateway.processors.context import Answer, Context, Refusal, request_name
from ropeway.gateway.wire.codes import RESPONSE_FLAG, ResponseCode
from ropeway.gateway.wire.commands.offsets import Offset
from ropeway.gateway.wire.frame import FrameReader, decode_envelope
from ropeway.gateway.wire.header import decode_fields
from ropeway.storage.api import LogUnavailableError


class Peer:
    """A connection that counts answers."""

    address = "127.0.0.1:1"
    take_answer = None

    def __init__(self) -> None:
        self.answers: list[bytes] = []

    def respond(self, *data):
        self.answers.append(b"".join(data))


def context(*, one_way: bool = False) -> tuple[Context, Peer]:
    peer = Peer()
    return Context(None, peer, 310, 9, one_way, b""), peer


def read(peer: Peer):
    (data,) = peer.answers
    (frame,) = FrameReader().feed(data)
    envelope = decode_envelope(*frame[:2])
    assert (envelope.opaque, envelope.flag) == (9, RESPONSE_FLAG)
    return envelope, decode_fields(envelope.ext_fields), frame.body


def test_a_header_alone_is_a_success():
    made, peer = context()
    made.answer(Offset(offset=5))
    envelope, fields, body = read(peer)
    assert (envelope.code, fields, body) == (0, {"offset": "5"}, b"")


def test_an_answer_may_have_a_header_more_fields_and_a_body():
    made, peer = context()
    made.answer(Answer(7, "why", Offset(offset=5), {"more": "x"}, b"body"))
    envelope, fields, body = read(peer)
    assert (envelope.code, envelope.remark) == (7, "why")
    assert (fields, body) == ({"offset": "5", "more": "x"}, b"body")


@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (Refusal(ResponseCode.NO_PERMISSION, "no"), 16, "no"),
        (LogUnavailableError("disk full"), 14, "disk full"),
        (KeyError("secret"), 1, "the broker failed at 310 SEND_MESSAGE_V2"),
        (Refusal(ResponseCode.SYSTEM_ERROR, "x" * 9999), 1, "x" * 1000),
    ],
)
def test_errors_become_codes_and_remarks(error: Exception, code: int, remark: str):
    made, peer = context()
    made.fail(error)
    envelope, _, _ = read(peer)
    assert envelope.code == code
    assert envelope.remark.startswith(remark)
    assert "secret" not in envelope.remark
    assert len(envelope.remark) <= 1000


def test_one_way_requests_are_counted_and_not_answered():
    made, peer = context(one_way=True)
    made.answer(Answer())
    made.respond(b"frame")
    made.refuse(ResponseCode.SYSTEM_ERROR, "no")
    assert peer.answers == [b"", b"", b""]


def test_codes_have_names_where_they_are_known():
    assert request_name(310) == "310 SEND_MESSAGE_V2"
    assert request_name(31_337) == "31337"
