"""Stored messages: golden bytes, real captures, any message, and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message import (
    BORN_HOST_V6_FLAG,
    COMPRESSED_FLAG,
    COMPRESSION_TYPE_MASK,
    MAGIC_V1,
    MAGIC_V2,
    STORE_HOST_V6_FLAG,
    Front,
    Message,
    assemble,
    crc,
    decode,
    encode,
    host_flags,
    pack_host,
    split,
    topic_field,
    view_pairs,
    view_properties,
)
from tests import captures

GOLDEN = bytes.fromhex(
    "0000006b" "daa320a7" "3610a686" "00000002" "00000000"
    "0000000000000003" "0000000000000e91" "00000000" "000001a1fe3a1dc7"
    "c0000202" "0000c350" "000001a1fe3a1dd0" "7f000001" "00005213"
    "00000000" "0000000000000000"
    "00000005" "68656c6c6f" "02" "5431" "0009" "544147530154616702"
)  # fmt: skip
GOLDEN_MESSAGE = Message(
    topic="T1",
    queue_id=2,
    queue_offset=3,
    message_id=0xE91,
    body=b"hello",
    properties="TAGS\x01Tag\x02",
    born_ms=0x1A1FE3A1DC7,
    born_host=("192.0.2.2", 50000),
    store_ms=0x1A1FE3A1DD0,
    store_host=("127.0.0.1", 21011),
    body_crc=0x3610A686,
)
CODES_WITH_MESSAGES = [
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.QUERY_MESSAGE,
    RequestCode.VIEW_MESSAGE_BY_ID,
    RequestCode.POP_MESSAGE,
    RequestCode.PEEK_MESSAGE,
]

i32s = st.integers(-(1 << 31), (1 << 31) - 1)
i64s = st.integers(-(1 << 63), (1 << 63) - 1)
hosts = st.tuples(
    st.ip_addresses().map(str),
    st.integers(0, 0xFFFF),
)
messages = st.builds(
    Message,
    topic=st.text(max_size=200),
    queue_id=i32s,
    queue_offset=i64s,
    message_id=i64s,
    body=st.binary(max_size=300),
    properties=st.text(max_size=300),
    flag=i32s,
    sys_flag=i32s.map(lambda flag: flag & ~(BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG)),
    born_ms=i64s,
    born_host=hosts,
    store_ms=i64s,
    store_host=hosts,
    reconsume_times=i32s,
    prepared_transaction_offset=i64s,
    body_crc=i32s,
)


def sample(**changes: object) -> Message:
    base: dict[str, object] = {
        "topic": "T",
        "queue_id": 0,
        "queue_offset": 0,
        "message_id": 0,
        "body": b"body",
        "properties": "",
    }
    return Message(**{**base, **changes})  # type: ignore[arg-type]


def with_v6_flags(given_message: Message) -> int:
    born, store = (
        pack_host(*given_message.born_host),
        pack_host(*given_message.store_host),
    )
    return given_message.sys_flag | host_flags(born, store)


def test_golden_bytes_are_written() -> None:
    assert encode(GOLDEN_MESSAGE) == GOLDEN


def test_golden_bytes_are_read() -> None:
    assert decode(GOLDEN) == GOLDEN_MESSAGE


@pytest.mark.parametrize("code", CODES_WITH_MESSAGES, ids=lambda code: code.name)
def test_captured_messages_are_read_and_written_to_the_same_bytes(code: int) -> None:
    count = 0
    for capture in captures.load(code):
        if capture.response is None:
            continue
        for data in split(capture.response.raw.body):
            got = decode(data)
            assert encode(got) == bytes(data)
            assert got.body_crc == crc(got.body)
            assert view_properties(data) == got.properties.encode()
            assert view_pairs(data) == f"\x02{got.properties}\x02".encode()
            again = properties.dump(properties.parse(got.properties))
            assert again.rstrip("\x02") == got.properties.rstrip("\x02")
            count += 1
    assert count


def test_the_half_message_that_a_broker_sends_back_is_a_stored_message() -> None:
    for capture in captures.load(RequestCode.CHECK_TRANSACTION_STATE):
        body = capture.request.raw.body
        assert encode(decode(body)) == body
        assert properties.TRANSACTION_PREPARED in properties.parse(
            decode(body).properties
        )


@given(messages)
def test_any_message_survives(sent: Message) -> None:
    got = decode(encode(sent))
    assert got == Message(
        **{
            **{name: getattr(sent, name) for name in sent.__struct_fields__},
            "sys_flag": with_v6_flags(sent),
        }
    )


@given(st.lists(messages, max_size=4))
def test_a_pulls_body_is_cut_into_its_messages(sent: list[Message]) -> None:
    stored = [encode(one) for one in sent]
    assert [bytes(part) for part in split(b"".join(stored))] == stored


@given(messages)
def test_properties_are_found_without_taking_the_message_apart(sent: Message) -> None:
    assert view_properties(encode(sent)) == sent.properties.encode()
    assert view_pairs(encode(sent)) == f"\x02{sent.properties}\x02".encode()


@pytest.mark.parametrize("born", ["192.0.2.1", "2001:db8::1"])
@pytest.mark.parametrize("store", ["127.0.0.1", "::1"])
def test_hosts_of_both_families_are_kept(born: str, store: str) -> None:
    got = decode(encode(sample(born_host=(born, 1), store_host=(store, 65535))))
    assert (got.born_host, got.store_host) == ((born, 1), (store, 65535))
    assert bool(got.sys_flag & BORN_HOST_V6_FLAG) == (":" in born)
    assert bool(got.sys_flag & STORE_HOST_V6_FLAG) == (":" in store)


def test_flags_that_contradict_the_hosts_are_put_right() -> None:
    wrong = sample(sys_flag=BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG | COMPRESSED_FLAG)
    assert decode(encode(wrong)).sys_flag == COMPRESSED_FLAG


def test_compressed_bodies_and_their_flags_pass_untouched() -> None:
    flags = COMPRESSED_FLAG | (COMPRESSION_TYPE_MASK & 0x300)
    got = decode(encode(sample(sys_flag=flags, body=b"\x78\x9c not ours to open")))
    assert got.sys_flag == flags
    assert got.body == b"\x78\x9c not ours to open"


@pytest.mark.parametrize(
    ("length", "magic"),
    [(0, MAGIC_V1), (127, MAGIC_V1), (128, MAGIC_V2), (255, MAGIC_V2)],
)
def test_a_long_topic_makes_a_v2_message(length: int, magic: int) -> None:
    data = encode(sample(topic="t" * length))
    assert struct.unpack_from(">i", data, 4) == (magic,)
    assert decode(data).topic == "t" * length
    assert view_properties(data) == b""


def test_a_checksum_that_is_not_given_is_computed() -> None:
    assert decode(encode(sample())).body_crc == crc(b"body")
    assert crc(b"hello world, again") >= 0


def test_assembled_parts_are_what_encode_makes() -> None:
    magic, topic = topic_field("T1")
    assert (
        assemble(
            Front(
                magic, 0x3610A686, 2, 0, 3, 0xE91, 0,
                0x1A1FE3A1DC7, pack_host("192.0.2.2", 50000),
                0x1A1FE3A1DD0, pack_host("127.0.0.1", 21011),
                0,
            ),
            memoryview(b"hello"), topic, b"TAGS\x01Tag\x02",
        )
        == GOLDEN
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"queue_id": 1 << 31},
        {"queue_offset": 1 << 63},
        {"message_id": -(1 << 63) - 1},
        {"born_ms": 1 << 63},
        {"reconsume_times": 1 << 31},
        {"flag": -(1 << 31) - 1},
        {"body_crc": 1 << 31},
        {"topic": "t" * 32768},
        {"properties": "p" * 32768},
        {"properties": "\ud800"},
        {"topic": "\ud800"},
        {"born_host": ("localhost", 1)},
        {"store_host": ("127.0.0.1", 1 << 31)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_member_that_does_not_fit_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(MessageError):
        encode(sample(**change))


def test_the_length_of_properties_that_are_too_long_is_said() -> None:
    with pytest.raises(MessageError, match=r"of 32768 bytes; allowed: 32767$"):
        encode(sample(properties="p" * 32768))


@pytest.mark.parametrize("end", range(len(GOLDEN)))
def test_a_cut_message_is_refused(end: int) -> None:
    with pytest.raises(MessageError):
        decode(GOLDEN[:end])
    if end:
        with pytest.raises(MessageError):
            list(split(GOLDEN[:end]))


@given(st.integers(0, len(GOLDEN) - 1), st.integers(0, 255))
def test_damage_raises_message_errors_only(at: int, value: int) -> None:
    data = bytearray(GOLDEN)
    data[at] = value
    try:
        got = decode(data)
    except MessageError:
        return
    assert encode(got) == bytes(data)


@given(st.binary(max_size=300))
def test_garbage_raises_message_errors_only(data: bytes) -> None:
    for read in (decode, lambda given_bytes: list(split(given_bytes))):
        try:
            read(data)
        except MessageError:
            continue


def patched(at: int, value: bytes) -> bytes:
    return GOLDEN[:at] + value + GOLDEN[at + len(value) :]


def short(size: int) -> bytes:
    """So much of a message, if it has the length in front."""
    return (struct.pack(">i", size) + GOLDEN[4:])[:size]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (patched(0, b"\x00\x00\x00\x6c"), "message of 107 bytes says 108"),
        (patched(4, b"\x00\x00\x00\x07"), "has magic 0x7"),
        (patched(68, b"\x00\x01\x00\x00"), "port 65536"),
        (patched(52, b"\x00\x01\x00\x00"), "port 65536"),
        (patched(84, b"\xff\xff\xff\xff"), "field of -1 bytes"),
        (patched(84, b"\x7f\xff\xff\xff"), "field of 2147483647 bytes"),
        (patched(93, b"\x80"), "topic of 128 bytes; allowed: 127"),
        (patched(96, b"\xff\xff"), "field of -1 bytes"),
        (patched(96, b"\x00\x07"), "ends after 105"),
        (patched(94, b"\xff"), "byte 0 of a text is 0xff; allowed: UTF-8"),
        *((short(size), "it ends before all") for size in (0, 8, 50, 60, 93)),
    ],
)
def test_damage_is_named(data: bytes, said: str) -> None:
    with pytest.raises(MessageError, match=said):
        decode(data)


@pytest.mark.parametrize("size", [-1, 0, 90, 108])
def test_an_impossible_size_stops_the_cutting(size: int) -> None:
    parts = split(GOLDEN + struct.pack(">i", size) + GOLDEN[4:])
    assert bytes(next(parts)) == GOLDEN
    with pytest.raises(MessageError, match=f"of {size} bytes; allowed: 91 to 107"):
        next(parts)


def test_bytes_behind_the_last_message_are_refused() -> None:
    with pytest.raises(MessageError, match="3 bytes left over"):
        list(split(GOLDEN + b"abc"))


def test_the_shortest_message_is_as_long_as_the_cutting_allows() -> None:
    shortest = encode(sample(topic="", body=b""))
    assert len(shortest) == message._MIN_BYTES
    assert len(list(split(shortest))) == 1


def test_what_a_message_does_not_say_is_nothing() -> None:
    least = {
        "topic": "T1",
        "queue_id": 0,
        "queue_offset": 0,
        "message_id": 0,
        "body": b"",
        "properties": "",
    }
    plain = Message(**least)
    assert (plain.born_ms, plain.store_ms, plain.reconsume_times) == (0, 0, 0)
