"""Header blocks in several frames."""

from __future__ import annotations

import pytest

from ropeway.gateway.http2.blocks import Blocks
from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    WITH_PRIORITY,
)
from ropeway.gateway.http2.headers import encode

BLOCK = encode([("a", "b")])


def test_a_block_may_come_in_pieces():
    blocks = Blocks()
    blocks.begin(END_STREAM, 3, BLOCK[:2])
    assert blocks.take() is None
    assert blocks.stream_id == 3
    blocks.go_on(0, 3, BLOCK[2:3])
    assert blocks.take() is None
    blocks.go_on(END_HEADERS, 3, BLOCK[3:])
    block = blocks.take()
    assert block is not None
    assert (block.stream_id, block.fields, block.ends) == (3, {"a": "b"}, True)
    assert not blocks.stream_id


def test_padding_and_priority_are_taken_off():
    blocks = Blocks()
    flags = END_HEADERS | PADDED | WITH_PRIORITY
    blocks.begin(flags, 3, b"\2" + b"\0\0\0\1\0" + BLOCK + b"\0\0")
    block = blocks.take()
    assert block is not None
    assert block.fields == {"a": "b"}
    assert not block.depends_on_itself
    blocks.begin(END_HEADERS | WITH_PRIORITY, 5, b"\0\0\0\5\0" + BLOCK)
    block = blocks.take()
    assert block is not None
    assert block.depends_on_itself
    with pytest.raises(ConnectionFault) as fault:
        blocks.begin(WITH_PRIORITY, 7, b"\0\0")
    assert fault.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_pieces_of_another_stream_or_of_none_are_refused():
    blocks = Blocks()
    with pytest.raises(ConnectionFault):
        blocks.go_on(0, 3, BLOCK)
    blocks.begin(0, 3, BLOCK)
    with pytest.raises(ConnectionFault):
        blocks.go_on(0, 5, BLOCK)


@pytest.mark.parametrize(("piece", "most"), [(b"", 63), (bytes(16_000), 8)])
def test_pieces_without_end_are_refused(piece, most):
    blocks = Blocks()
    blocks.begin(0, 3, b"")
    for _ in range(most):
        blocks.go_on(0, 3, piece)
    with pytest.raises(ConnectionFault) as fault:
        blocks.go_on(0, 3, piece)
    assert fault.value.code is ErrorCode.ENHANCE_YOUR_CALM
