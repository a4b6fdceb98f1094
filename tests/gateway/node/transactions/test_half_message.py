"""A half message: what it says is at hand, and when it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message import Message
from tests.gateway.node.transactions.place import HALF, place
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.api import Chunk


def read(pairs: dict[str, str], **changes) -> half_messages.Half:
    fields = {
        "topic": "half",
        "queue_id": 0,
        "queue_offset": 5,
        "message_id": 6,
        "body": b"x",
        "born_ms": 10_000,
        "store_ms": 20_000,
        **changes,
    }
    return half_messages.read(
        message.encode(Message(properties=properties.dump(pairs), **fields))
    )


@pytest.mark.parametrize(
    ("pairs", "due_ms"),
    [
        ({}, 26_000),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}, 70_000),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "0"}, 10_000),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "-1"}, 26_000),
        ({"CHECK_IMMUNITY_TIME_IN_SECONDS": "soon"}, 26_000),
        ({"TRANSACTION_CHECK_TIMES": "0"}, 26_000),
        ({"TRANSACTION_CHECK_TIMES": "1"}, 50_000),
        (
            {
                "TRANSACTION_CHECK_TIMES": "1",
                "CHECK_IMMUNITY_TIME_IN_SECONDS": "60",
            },
            50_000,
        ),
    ],
)
def test_a_half_message_is_due_by_what_it_says(pairs: dict[str, str], due_ms: int):
    assert read(pairs).due_ms(6000, 30_000) == due_ms


def test_what_a_half_message_says_is_at_hand():
    half = read(
        {
            "REAL_TOPIC": "orders",
            "REAL_QID": "3",
            "PGROUP": "g",
            "UNIQ_KEY": "u",
            "KEYS": "a b",
            "TAGS": "t",
            "DELAY": "3",
            "TRAN_PREPARED_QUEUE_OFFSET": "2",
        }
    )
    assert (half.offset, half.origin) == (5, 2)
    assert (half.topic, half.queue_id, half.group) == ("orders", 3, "g")
    assert half.unique_key == "u"
    assert half.is_delayed
    bare = read({})
    assert (bare.offset, bare.origin, bare.checks) == (5, 5, 0)
    assert (bare.topic, bare.queue_id, bare.immunity_ms) == ("", 0, None)


class Counting:
    """A partition that counts its reads."""

    def __init__(self, true: Any) -> None:
        self._true = true
        self.reads = 0

    def read_now(self, *_: Any) -> None:
        """Nothing is in memory."""

    async def read(self, *arguments: Any) -> Chunk:
        self.reads += 1
        return await self._true.read(*arguments)


@looped
async def test_a_start_reads_many_half_messages_at_a_time(tmp_path: Path):
    async with place(tmp_path) as one:
        for number in range(100):
            await one.send_half(b"%d" % number)
        partition = Counting(one.partition(HALF))
        found = [each async for each in half_messages.read_range(partition, 10, 90)]
        assert [each.offset for each in found] == list(range(10, 90))
        assert partition.reads == 1


def test_properties_that_are_no_text_are_no_half_message():
    data = message.encode(
        Message(
            topic="half",
            queue_id=0,
            queue_offset=0,
            message_id=0,
            body=b"x",
            properties="ab",
        )
    )
    with pytest.raises(MessageError, match="not a half message"):
        half_messages.read(data[:-2] + b"\xff\xff")
