"""Our decoder says what hpack's says, of blocks that are sound or not."""

from __future__ import annotations

import pytest
from hpack import Decoder as Reference
from hpack import Encoder, HPACKError
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.hpack_decoder import PSEUDO, REGULAR, WRONG, Decoder

names = st.sampled_from([b":path", b"a", b"te", b"content-type", b"x-mq-request-id"])
values = st.binary(max_size=2000)
fields = st.lists(st.tuples(names, values, st.booleans()), max_size=6)
blocks = st.lists(
    st.tuples(fields, st.booleans(), st.none() | st.integers(0, 4096)), max_size=8
)


def pairs(found: list) -> list[tuple[bytes, bytes]]:
    return [(one[0].encode("latin-1"), one[1].encode("latin-1")) for one in found]


def outcome(decode, block: bytes):
    """What a decoder makes of a block; None where it refuses it."""
    try:
        return list(decode(block))
    except (HPACKError, ConnectionFault):
        return None


def theirs(decoder: Reference):
    return lambda block: [tuple(one) for one in decoder.decode(block, raw=True)]


def ours(decoder: Decoder):
    return lambda block: pairs(decoder.decode(block))


@given(blocks)
def test_sound_blocks_mean_the_same(said):
    encoder, reference, decoder = Encoder(), Reference(1 << 20), Decoder()
    for one, huffman, size in said:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(one, huffman=huffman)
        assert ours(decoder)(block) == theirs(reference)(block)
        table = reference.header_table.dynamic_entries
        assert pairs(list(decoder._dynamic)) == list(table)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5))
def test_garbage_is_refused_alike(said):
    reference, decoder = Reference(1 << 17), Decoder()
    for block in said:
        expected = outcome(theirs(reference), block)
        found = outcome(ours(decoder), block)
        assert found == expected
        if expected is None:
            return


@given(fields, st.data())
def test_cut_and_damaged_blocks_are_refused_alike(one, data):
    block = bytearray(Encoder().encode(one))
    for _ in range(data.draw(st.integers(0, 3))):
        if block:
            block[data.draw(st.integers(0, len(block) - 1))] = data.draw(
                st.integers(0, 255)
            )
    cut = bytes(block[: data.draw(st.integers(0, len(block)))])
    expected = outcome(theirs(Reference(1 << 17)), cut)
    assert outcome(ours(Decoder()), cut) == expected


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",
        b"\xbe",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x40\x05a",
        b"\x40\x7f",
        b"\x82\x20",
        b"\x3f\xe2\x1f",
        b"\x00\x81\x00\x00",
    ],
)
def test_blocks_that_are_none_end_the_connection(block):
    with pytest.raises(ConnectionFault) as fault:
        Decoder().decode(block)
    assert fault.value.code is ErrorCode.COMPRESSION_ERROR


def test_blocks_that_grow_without_end_are_refused():
    decoder = Decoder()
    decoder.decode(b"\x40\1a\x7f\x81\x1e" + b"x" * 3968)
    with pytest.raises(ConnectionFault):
        decoder.decode(b"\xbe" * 100)


def test_fields_are_told_apart():
    kinds = {
        (b":path", b"/"): PSEUDO,
        (b":status", b"200"): WRONG,
        (b"a", b"b"): REGULAR,
        (b"A", b"b"): WRONG,
        (b"te", b"trailers"): REGULAR,
        (b"te", b"gzip"): WRONG,
        (b"connection", b"close"): WRONG,
        (b"", b"x"): WRONG,
    }
    for (name, value), kind in kinds.items():
        block = bytes([0, len(name)]) + name + bytes([len(value)]) + value
        assert Decoder().decode(block)[0][2:] == (len(name) + len(value) + 32, kind)
