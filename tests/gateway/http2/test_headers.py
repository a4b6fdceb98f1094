"""Header blocks: what others say is understood, and remembered only if it may be."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.headers import HeaderDecoder, encode, is_request, is_trailers

ASKED = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/a.B/C"),
    ("te", "trailers"),
    ("x-mq-client-id", "somebody"),
]
names = st.sampled_from(["a", "b", "content-type", "x-mq-request-id", "grpc-timeout"])
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
fields = st.lists(st.tuples(names, values), max_size=6, unique_by=lambda one: one[0])


@given(st.lists(st.tuples(fields, st.booleans(), st.booleans()), max_size=12))
def test_blocks_mean_what_a_decoder_without_memory_says(said):
    encoder, plain, ours = Encoder(), Decoder(), HeaderDecoder()
    for one, huffman, sensitive in said:
        given_fields = [(*pair, sensitive) for pair in one]
        for _ in range(2):
            block = encoder.encode(given_fields, huffman=huffman)
            assert ours.decode(block) == dict(plain.decode(block))


def test_the_same_bytes_after_a_change_of_the_table_mean_something_else():
    ours = HeaderDecoder()
    assert ours.decode(b"\x40\1a\1b") == {"a": "b"}
    newest = b"\xbe"
    assert ours.decode(newest) == {"a": "b"}
    assert ours.decode(newest) is ours.decode(newest)
    assert ours.decode(b"\x40\1c\1d") == {"c": "d"}
    assert ours.decode(newest) == {"c": "d"}
    assert ours.decode(b"\x20") == {}
    with pytest.raises(ConnectionFault):
        ours.decode(newest)


@pytest.mark.parametrize(
    "block", [b"\x80", b"\xff\xff", b"\x40\5a", b"\x3f\xff\xff\x7f"]
)
def test_blocks_that_are_none_end_the_connection(block):
    with pytest.raises(ConnectionFault) as fault:
        HeaderDecoder().decode(block)
    assert fault.value.code is ErrorCode.COMPRESSION_ERROR


def test_blocks_that_grow_without_end_end_the_connection():
    ours = HeaderDecoder()
    ours.decode(b"\x40\1a\x7f\x81\x1e" + b"x" * 3968)
    with pytest.raises(ConnectionFault):
        ours.decode(b"\xbe" * 100)


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
    assert is_request(HeaderDecoder().decode(encode(ASKED)))
    assert not is_request(HeaderDecoder().decode(encode(wrong)))


def test_trailers_have_no_fields_of_requests():
    assert is_trailers(HeaderDecoder().decode(encode([("a", "b")])))
    assert not is_trailers(HeaderDecoder().decode(encode(ASKED[:1])))


def test_sizes_are_counted_as_the_rfc_does_and_doubles_are_joined():
    found = HeaderDecoder().decode(encode([("a", "b"), ("a", "cd")]))
    assert found == {"a": "b,cd"}
    assert found.size == 2 * 32 + 5
