"""Message ids: golden numbers, any id, and what is out of range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message import decode, split
from ropeway.gateway.wire.message_id import (
    MAX_OFFSET,
    MAX_PARTITION,
    MessageId,
    OffsetMsgId,
    address_prefix,
    base,
    format_offset_msg_id,
    offset_of,
    pack,
    parse_offset_msg_id,
    unpack,
)
from tests import captures

partitions = st.integers(0, MAX_PARTITION)
offsets = st.integers(0, MAX_OFFSET)


@pytest.mark.parametrize(
    ("partition", "offset", "retry", "number"),
    [
        (0, 0, False, 0),
        (0, 1, False, 1),
        (1, 0, False, 1 << 52),
        (0, 0, True, 1 << 62),
        (1023, (1 << 52) - 1, False, (1 << 62) - 1),
        (1023, (1 << 52) - 1, True, (1 << 63) - 1),
        (5, 1204, True, 0x40500000000004B4),
    ],
)
def test_golden_ids(partition: int, offset: int, retry: bool, number: int) -> None:
    assert pack(partition, offset, retry=retry) == number
    assert unpack(number) == MessageId(retry, partition, offset)
    assert offset_of(number) == offset


@given(partitions, offsets, st.booleans())
def test_any_id_survives_and_fits_a_signed_64_bit_number(
    partition: int, offset: int, retry: bool
) -> None:
    number = pack(partition, offset, retry=retry)
    assert 0 <= number < 1 << 63
    assert unpack(number) == MessageId(retry, partition, offset)
    assert base(partition, retry=retry) + offset == number


@given(st.tuples(partitions, offsets), st.tuples(partitions, offsets))
def test_ids_are_ordered_as_their_partitions_and_offsets(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (pack(*one) < pack(*other)) == (one < other)


@pytest.mark.parametrize("partition", [-1, 1024])
def test_a_partition_out_of_range_is_refused(partition: int) -> None:
    with pytest.raises(
        MessageError, match=f"partition {partition}; allowed: 0 to 1023"
    ):
        pack(partition, 0)


@pytest.mark.parametrize("offset", [-1, 1 << 52])
def test_an_offset_out_of_range_is_refused(offset: int) -> None:
    with pytest.raises(MessageError, match="allowed: 0 to 4503599627370495"):
        pack(0, offset)


@pytest.mark.parametrize("number", [-1, 1 << 63, 1 << 64])
def test_what_is_no_id_is_refused(number: int) -> None:
    with pytest.raises(MessageError, match="allowed: 0 to 2\\^63 - 1"):
        unpack(number)


def test_golden_offset_msg_ids() -> None:
    text = "7F000001000052130000000000000E91"
    assert parse_offset_msg_id(text) == OffsetMsgId("127.0.0.1", 21011, 0xE91)
    assert format_offset_msg_id("127.0.0.1", 21011, 0xE91) == text
    v6 = "20010DB800000000000000000000000100002A9F00000000000004B4"
    assert parse_offset_msg_id(v6) == OffsetMsgId("2001:db8::1", 10911, 1204)
    assert format_offset_msg_id("2001:db8::1", 10911, 1204) == v6


@given(
    st.ip_addresses().map(str), st.integers(0, 0xFFFF), st.integers(0, (1 << 63) - 1)
)
def test_any_offset_msg_id_survives(host: str, port: int, number: int) -> None:
    text = format_offset_msg_id(host, port, number)
    assert parse_offset_msg_id(text) == OffsetMsgId(host, port, number)
    assert parse_offset_msg_id(text.lower()) == OffsetMsgId(host, port, number)
    assert text.startswith(address_prefix(host, port))


def test_the_ids_that_a_broker_answers_name_the_messages_it_stored() -> None:
    answered = {
        text
        for code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
        for capture in captures.load(code)
        if capture.response and (text := capture.response.fields.get("msgId"))
    }
    assert answered
    for text in answered:
        parsed = parse_offset_msg_id(text)
        assert format_offset_msg_id(*parsed) == text
    viewed = captures.load(RequestCode.VIEW_MESSAGE_BY_ID)
    for capture in viewed:
        assert capture.response is not None
        (data,) = split(capture.response.raw.body)
        stored = decode(data)
        assert str(stored.message_id) == capture.request.fields["offset"]
        text = format_offset_msg_id(*stored.store_host, stored.message_id)
        assert parse_offset_msg_id(text).port == stored.store_host[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7F",
        "7F000001000052130000000000000E9",
        "7F000001000052130000000000000E911",
        "7G000001000052130000000000000E91",
        "7F 00 00 01 00 00 52 13 00 00 00",
        "7F00000100010000000000000000E910",
        "\u0661F000001000052130000000000000E91",
        "x" * 56,
    ],
)
def test_what_is_no_offset_msg_id_is_refused(text: str) -> None:
    with pytest.raises(MessageError, match="offsetMsgId"):
        parse_offset_msg_id(text)


@given(st.text(max_size=60))
def test_garbage_raises_message_errors_only(text: str) -> None:
    try:
        got = parse_offset_msg_id(text)
    except MessageError:
        return
    assert format_offset_msg_id(*got).lower() == text.lower()
