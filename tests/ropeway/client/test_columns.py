"""Columns hold what single messages hold, and garbage is told apart."""

from __future__ import annotations

import zlib

import pytest

from ropeway.client.columns import read_columns
from ropeway.client.errors import BadResponseError
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.message import COMPRESSED_FLAG, Message


def stored(offset: int, **changes) -> bytes:
    """A stored message."""
    fields = {
        "topic": "orders",
        "queue_id": 1,
        "queue_offset": offset,
        "message_id": offset,
        "body": b"body-%d" % offset,
        "properties": properties.dump({"TAGS": f"t{offset}"}),
        "born_ms": 1000 + offset,
        "store_ms": 2000 + offset,
        **changes,
    }
    return message.encode(Message(**fields))


def test_columns_hold_the_wanted_range() -> None:
    data = b"".join(map(stored, range(5)))
    columns = read_columns(data, 1, 4)
    assert columns.offsets == [1, 2, 3]
    assert columns.bodies == [b"body-1", b"body-2", b"body-3"]
    assert columns.store_ms == [2001, 2002, 2003]
    assert columns.born_ms == [1001, 1002, 1003]
    assert columns.properties == [
        b"TAGS\x01t1\x02",
        b"TAGS\x01t2\x02",
        b"TAGS\x01t3\x02",
    ]


def test_all_shapes_of_messages_are_read() -> None:
    data = b"".join(
        (
            stored(0, topic="t" * 200),
            stored(1, born_host=("::1", 1), store_host=("::1", 2)),
            stored(2, born_host=("::1", 1)),
            stored(3, body=zlib.compress(b"small"), sys_flag=COMPRESSED_FLAG | 0x300),
            stored(4, body=b"lz4 it says", sys_flag=COMPRESSED_FLAG | 0x100),
            stored(5, properties=""),
        )
    )
    columns = read_columns(data, 0, 6)
    assert columns.offsets == [0, 1, 2, 3, 4, 5]
    assert columns.bodies[3:] == [b"small", b"lz4 it says", b"body-5"]
    assert columns.properties[0] == b"TAGS\x01t0\x02"
    assert columns.properties[5] == b""


def test_any_cut_is_an_error() -> None:
    data = stored(0) + stored(1)
    for end in range(1, len(data)):
        if end != len(stored(0)):
            with pytest.raises(BadResponseError):
                read_columns(data[:end], 0, 2)
