"""Frequent answers are made from templates, and say what `encode_frame` would."""

from __future__ import annotations

import pytest

from ropeway.gateway.pop.pop_receive import Taken, Wanted
from ropeway.gateway.processors import pop_answers
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, decode_fields

TAKEN = Taken(Wanted("readers", "orders", 0, 32, 60_000), 1795248367175)
TAKEN.starts, TAKEN.offsets, TAKEN.rest = ["0 0 7", "0 1 2"], ["0 0 7,8", "0 1 2"], 9
TAKEN.data = [b"one", memoryview(b"two")]
ORDERED = Taken(TAKEN.wanted, 5)
ORDERED.starts, ORDERED.offsets = ["0 0 7"], ["0 0 7"]
ORDERED.orders = ["0 qo0%7 1", "0 0 0"]
ORDERED.data = [b"one"]


def read(pieces):
    """What a client reads in a frame."""
    ((kind, header, body),) = FrameReader(1 << 20).feed(b"".join(pieces))
    envelope = decode_envelope(kind, header)
    fields = decode_fields(envelope.ext_fields) if envelope.ext_fields else {}
    return envelope.code, envelope.opaque, envelope.flag, envelope.remark, fields, body


@pytest.mark.parametrize(
    "answer",
    [
        pop_answers.found(TAKEN, 0),
        pop_answers.found(ORDERED, 999),
        pop_answers.kept(1795248367175, 30_000, 999),
        pop_answers.DONE,
    ],
    ids=["found", "ordered", "kept", "done"],
)
def test_a_template_says_what_the_answer_does(answer: Answer):
    made, general = answer.frame(42), Answer.frame(answer, 42)
    assert read(made) == read(general)
    assert sum(map(len, made)) == sum(map(len, general))
    assert made[1:] == tuple(answer.records), "messages go as they are"


def test_a_pop_without_messages_says_how_many_there_are():
    answer = pop_answers.empty(210, 60_000, 0, 5, 3)
    assert (answer.code, answer.remark) == (210, "NO_MESSAGE_IN_QUEUE")
    assert answer.header.start_offset_info == answer.header.msg_offset_info == ""
    assert (answer.header.pop_time, answer.header.rest_num) == (5, 3)
