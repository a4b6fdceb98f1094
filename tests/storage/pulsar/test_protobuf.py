"""Messages become the bytes of Protocol Buffers, and back; garbage is refused."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.protobuf import Message, read_varint, varint


class Inner(Message, frozen=True):
    number: Annotated[int, 1]
    text: Annotated[str, 2] = ""


class Outer(Message, frozen=True):
    number: Annotated[int, 1]
    flag: Annotated[bool, 2] = False
    data: Annotated[bytes | None, 3] = None
    inner: Annotated[Inner | None, 4] = None
    many: Annotated[tuple[Inner, ...], 20] = ()


signed = st.integers(-(1 << 63), (1 << 63) - 1)
inners = st.builds(Inner, signed, st.text())
outers = st.builds(
    Outer,
    signed,
    st.booleans(),
    st.none() | st.binary(),
    st.none() | inners,
    st.lists(inners).map(tuple),
)


def test_the_bytes_are_those_of_the_encoding_guide():
    assert Inner(150).encode() == bytes.fromhex("089601")
    assert Inner(1, "testing").encode() == bytes.fromhex("0801 120774657374696e67")
    assert Outer(1, inner=Inner(150)).encode() == bytes.fromhex("0801 2203 089601")


def test_a_field_with_its_default_is_not_written():
    assert Outer(0).encode() == b"\x08\x00"


def test_integers_above_the_signed_ones_are_negative():
    assert read_varint(b"\xff" * 9 + b"\x01", 0, 10) == (-1, 10)
    assert varint(-1) == b"\xff" * 9 + b"\x01"


@given(outers)
def test_what_was_encoded_decodes_to_the_same(message: Outer):
    assert Outer.decode(message.encode()) == message


@given(outers, st.data())
def test_a_message_ends_where_it_is_said_to(message: Outer, data: st.DataObject):
    before, after = data.draw(st.binary()), data.draw(st.binary())
    encoded = message.encode()
    end = len(before) + len(encoded)
    assert Outer.decode(before + encoded + after, len(before), end) == message


def test_unknown_fields_of_every_wire_type_are_skipped():
    unknown = bytes.fromhex("9801 05  9901 0102030405060708  9a01 0161  9d01 01020304")
    assert Outer.decode(unknown + b"\x08\x07" + unknown) == Outer(7)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Inner without number"),
        (b"\x08", "a varint at byte 1 that does not end before byte 1"),
        (b"\x08" + b"\xff" * 11, "a varint at byte 1 that does not end"),
        (b"\x12\x05ab", "a field of 5 bytes; allowed: 0 to 2"),
        (b"\x12\x01\xff", "text at byte 2 that is not UTF-8"),
        (b"\x0b", "a field with tag 11; allowed"),
        (b"\x9d\x01\x00", "a field with tag 157; allowed"),
    ],
)
def test_an_error_says_what_came_and_what_is_allowed(data, said):
    with pytest.raises(WireError) as caught:
        Inner.decode(data)
    assert str(caught.value).startswith(said)


@given(st.binary())
def test_garbage_is_a_message_or_a_wire_error(data: bytes):
    try:
        message = Outer.decode(data)
    except WireError:
        return
    assert Outer.decode(message.encode()) == message
