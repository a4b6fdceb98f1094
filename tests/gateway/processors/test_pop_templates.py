"""Frequent answers are made from templates, and say what `encode_frame` would."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.pop.pop_receive import Taken, Wanted
from ropeway.gateway.processors.pop import empty, found
from ropeway.gateway.processors.pop_acks import DONE, kept
from ropeway.gateway.wire.frame import FrameReader, decode_envelope
from ropeway.gateway.wire.header import decode_fields

if TYPE_CHECKING:
    from ropeway.gateway.processors.context import Answer

TAKEN = Taken(Wanted("readers", "orders", 0, 32, 60_000), 1795248367175)
TAKEN.starts, TAKEN.offsets, TAKEN.rest = ["0 0 7", "0 1 2"], ["0 0 7,8", "0 1 2"], 9
TAKEN.data = [b"one", memoryview(b"two")]
ORDERED = Taken(TAKEN.wanted._replace(in_order=True), 5)
ORDERED.starts, ORDERED.offsets = ["0 0 7"], ["0 0 7"]
ORDERED.orders = ["0 qo0%7 1", "0 0 0"]
ORDERED.data = [b"one"]


TRAFFIC = SimpleNamespace(pulled={"orders": Counter()})
ASKED = SimpleNamespace(node=SimpleNamespace(traffic=TRAFFIC))


def read(frame):
    """What a client reads in a frame."""
    ((kind, header, body),) = FrameReader(1 << 20).feed(frame)
    envelope = decode_envelope(kind, header)
    fields = decode_fields(envelope.ext_fields) if envelope.ext_fields else {}
    return envelope.code, envelope.opaque, envelope.flag, envelope.remark, fields, body


@pytest.mark.parametrize(
    "answer",
    [
        found(TAKEN, ASKED),
        found(ORDERED, ASKED),
        kept(1795248367175, 30_000, 999),
        DONE,
    ],
    ids=["found", "ordered", "kept", "done"],
)
def test_a_template_says_what_the_answer_does(answer: Answer):
    made = b"".join((answer.template(answer, 42), *answer.records))
    general = answer.frame(42)
    assert read(made) == read(general)
    assert len(made) == len(general)


def test_a_pop_without_messages_says_how_many_there_are():
    answer = empty(210, TAKEN.wanted, 5, 3)
    assert (answer.code, answer.remark) == (210, "NO_MESSAGE_IN_QUEUE")
    assert answer.header.start_offset_info == answer.header.msg_offset_info == ""
    assert (answer.header.pop_time, answer.header.rest_num) == (5, 3)
