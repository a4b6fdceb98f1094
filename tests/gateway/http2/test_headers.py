"""Header blocks: what others say is understood, and remembered only if it may be."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    WITH_PRIORITY,
)
from ropeway.gateway.http2.headers import Blocks, encode, is_trailers

BLOCK = encode([("a", "b")])

ASKED = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/a.B/C"),
    ("te", "trailers"),
    ("x-mq-client-id", "somebody"),
]
names = st.sampled_from(["a", "b", "content-type", "x-mq-request-id", "grpc-timeout"])
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)


def fields_of(blocks, block):
    """What a block that came in one frame says."""
    return blocks.begin(END_HEADERS, 1, block).fields


fields = st.lists(st.tuples(names, values), max_size=6, unique_by=lambda one: one[0])


@given(st.lists(st.tuples(fields, st.booleans(), st.booleans()), max_size=12))
def test_blocks_mean_what_a_decoder_without_memory_says(said):
    encoder, plain, ours = Encoder(), Decoder(), Blocks()
    for one, huffman, sensitive in said:
        given_fields = [(*pair, sensitive) for pair in one]
        for _ in range(2):
            block = encoder.encode(given_fields, huffman=huffman)
            assert fields_of(ours, block) == dict(plain.decode(block))


def test_the_same_bytes_after_a_change_of_the_table_mean_something_else():
    ours = Blocks()
    assert fields_of(ours, b"\x40\1a\1b") == {"a": "b"}
    newest = b"\xbe"
    assert fields_of(ours, newest) == {"a": "b"}
    assert fields_of(ours, newest) is fields_of(ours, newest)
    assert fields_of(ours, b"\x40\1c\1d") == {"c": "d"}
    assert fields_of(ours, newest) == {"c": "d"}
    assert fields_of(ours, b"\x20") == {}
    with pytest.raises(ConnectionFault):
        fields_of(ours, newest)


@pytest.mark.parametrize(
    "block", [b"\x80", b"\xff\xff", b"\x40\5a", b"\x3f\xff\xff\x7f"]
)
def test_blocks_that_are_none_end_the_connection(block):
    with pytest.raises(ConnectionFault) as fault:
        fields_of(Blocks(), block)
    assert fault.value.code is ErrorCode.COMPRESSION_ERROR


def test_blocks_that_grow_without_end_end_the_connection():
    ours = Blocks()
    fields_of(ours, b"\x40\1a\x7f\x81\x1e" + b"x" * 3968)
    with pytest.raises(ConnectionFault):
        fields_of(ours, b"\xbe" * 100)


@given(fields)
def test_our_blocks_are_understood_and_change_no_table(one):
    decoder = Decoder()
    assert decoder.decode(encode(one)) == one
    assert not decoder.header_table.dynamic_entries


def test_long_values_have_their_length_in_several_bytes():
    for size in (126, 127, 128, 254, 255, 16_000):
        assert Decoder().decode(encode([("a", "x" * size)])) == [("a", "x" * size)]


@pytest.mark.parametrize(
    "wrong",
    [
        [*ASKED, ("A", "b")],
        [*ASKED, ("connection", "close")],
        [*ASKED, (":method", "POST")],
        [*ASKED, ("te", "gzip")],
        [(":status", "200"), *ASKED],
        [*ASKED[:2], *ASKED[3:]],
        [*ASKED[:2], (":path", "")],
        [ASKED[0], *ASKED[2:]],
        [*ASKED[1:]],
        [("", "x")],
    ],
)
def test_requests_that_break_a_rule_are_told(wrong):
    assert fields_of(Blocks(), encode(ASKED)).is_request
    assert not fields_of(Blocks(), encode(wrong)).is_request


def test_trailers_have_no_fields_of_requests():
    assert is_trailers(fields_of(Blocks(), encode([("a", "b")])))
    assert not is_trailers(fields_of(Blocks(), encode(ASKED[:1])))


def test_sizes_are_counted_as_the_rfc_does_and_doubles_are_joined():
    found = fields_of(Blocks(), encode([("a", "b"), ("a", "cd")]))
    assert found == {"a": "b,cd"}
    assert found.size == 2 * 32 + 5


def test_a_block_may_come_in_pieces():
    blocks = Blocks()
    assert blocks.begin(END_STREAM, 3, BLOCK[:2]) is None
    assert blocks.stream_id == 3
    assert blocks.go_on(0, 3, BLOCK[2:3]) is None
    block = blocks.go_on(END_HEADERS, 3, BLOCK[3:])
    assert block is not None
    assert (block.stream_id, block.fields, block.ends) == (3, {"a": "b"}, True)
    assert not blocks.stream_id


def test_padding_and_priority_are_taken_off():
    blocks = Blocks()
    flags = END_HEADERS | PADDED | WITH_PRIORITY
    block = blocks.begin(flags, 3, b"\2" + b"\0\0\0\1\0" + BLOCK + b"\0\0")
    assert block is not None
    assert block.fields == {"a": "b"}
    assert not block.depends_on_itself
    block = blocks.begin(END_HEADERS | WITH_PRIORITY, 5, b"\0\0\0\5\0" + BLOCK)
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
