"""The registry, and what it says of fields that are missing or wrong."""

from __future__ import annotations

import msgspec
import pytest

import ropeway.gateway.wire.commands  # noqa: F401 - fills the registry
from ropeway.gateway.wire import header
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.clients import UnregisterClient
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply
from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import (
    ROWS,
    Empty,
    Header,
    decode_request,
    from_fields,
    request,
    row_of,
    to_fields,
)

V2_FIELDS = {
    "a": "group",
    "b": "topic",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1",
    "h": "0",
}

I32_SAID = "a whole number from -2147483648 to 2147483647"
I64_SAID = "a whole number from -9223372036854775808 to 9223372036854775807"


def read(kind: type[Header], fields: object) -> Header:
    decoded: Header = decode_request(
        row_of(kind), msgspec.Raw(msgspec.json.encode(fields))
    )
    return decoded


def test_fields_are_read_as_their_types() -> None:
    got = read(GetMaxOffset, {"topic": "T", "queueId": "3", "committed": "false"})
    assert got == GetMaxOffset(topic="T", queue_id=3, committed=False)


def test_fields_that_nobody_declared_are_passed_over() -> None:
    fields = {"topic": "T", "queueId": "3", "ns": "b", "ReqT": "0", "x": "y"}
    assert read(GetMaxOffset, fields) == GetMaxOffset(topic="T", queue_id=3)


@pytest.mark.parametrize(
    ("fields", "queue_id"),
    [
        pytest.param({"topic": "T", "queueId": 3}, 3, id="numbers from C++"),
        pytest.param({"topic": 7, "queueId": "3"}, 3, id="a number for text"),
        pytest.param({"topic": "T", "queueId": "-1"}, -1, id="below zero"),
        pytest.param({"topic": "T", "queueId": "3", "committed": None}, 3, id="null"),
        pytest.param({"topic": True, "queueId": "3"}, 3, id="a boolean for text"),
    ],
)
def test_json_types_are_forgiven_as_java_forgives_them(
    fields: dict[str, object], queue_id: int
) -> None:
    got = read(GetMaxOffset, fields)
    assert isinstance(got, GetMaxOffset)
    assert got.queue_id == queue_id
    assert got.topic in ("T", "7", "true")
    assert got.committed is True


@pytest.mark.parametrize(
    "text", ["true", "false", "True", "FALSE"], ids=lambda text: text
)
def test_booleans_are_read_in_any_case(text: str) -> None:
    got = read(GetMaxOffset, {"topic": "T", "queueId": "0", "committed": text})
    assert isinstance(got, GetMaxOffset)
    assert got.committed is (text.lower() == "true")


def test_no_fields_at_all_are_no_error_where_none_is_required() -> None:
    empty = ROWS[RequestCode.HEART_BEAT].header
    assert decode_request(row_of(empty), msgspec.Raw(b"null")) == empty()


@pytest.mark.parametrize("raw", [b"null", b"{}"])
def test_a_missing_field_is_named(raw: bytes) -> None:
    with pytest.raises(HeaderError) as caught:
        decode_request(row_of(GetMaxOffset), msgspec.Raw(raw))
    assert str(caught.value) == "GET_MAX_OFFSET: field topic is missing"


def test_a_missing_one_letter_field_is_named_in_full() -> None:
    fields = {name: value for name, value in V2_FIELDS.items() if name != "e"}
    with pytest.raises(HeaderError) as caught:
        read(SendMessageV2, fields)
    assert str(caught.value) == "SEND_MESSAGE_V2: field e (queueId) is missing"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"e": "two"},
            f"e (queueId) is 'two'; allowed: {I32_SAID}",
        ),
        (
            {"e": "2147483648"},
            f"e (queueId) is '2147483648'; allowed: {I32_SAID}",
        ),
        (
            {"g": str(1 << 63)},
            f"g (bornTimestamp) is '9223372036854775808'; allowed: {I64_SAID}",
        ),
        (
            {"j": "1.5"},
            f"j (reconsumeTimes) is '1.5'; allowed: {I32_SAID}",
        ),
        ({"k": "maybe"}, "k (unitMode) is 'maybe'; allowed: true or false"),
        (
            {"h": True},
            f"h (flag) is 'true'; allowed: {I32_SAID}",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(
    wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(HeaderError) as caught:
        read(SendMessageV2, {**V2_FIELDS, **wrong})
    assert str(caught.value) == f"SEND_MESSAGE_V2: {said}"


def test_a_long_wrong_value_is_cut_in_the_message() -> None:
    with pytest.raises(HeaderError) as caught:
        read(GetMaxOffset, {"topic": "T", "queueId": "x" * 100_000})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"7",
        b'{"topic":{}}',
        b'{"topic":"\xff"}',
        b'{"topic":' + b"[" * 100_000,
        b"{",
        b"",
    ],
)
def test_fields_that_are_not_flat_raise_header_errors(raw: bytes) -> None:
    with pytest.raises(HeaderError, match=r"^GET_MAX_OFFSET: extFields are not"):
        decode_request(row_of(GetMaxOffset), msgspec.Raw(raw))
    with pytest.raises(HeaderError, match=r"^Offset: extFields are not"):
        from_fields(Offset, msgspec.Raw(raw))


def test_an_answers_fields_are_read_and_faults_named() -> None:
    raw = msgspec.Raw(b'{"msgId":"7F","queueId":"1","queueOffset":"5","x":"y"}')
    assert from_fields(SendReply, raw) == SendReply(
        msg_id="7F", queue_id=1, queue_offset=5
    )
    with pytest.raises(HeaderError, match=r"^Offset: field offset is missing$"):
        from_fields(Offset, msgspec.Raw(b"null"))


def test_fields_go_out_as_text_and_none_stays_at_home() -> None:
    reply = SendReply(msg_id="7F", queue_id=1, queue_offset=5, trace_on=True)
    assert to_fields(reply) == {
        "msgId": "7F",
        "queueId": "1",
        "queueOffset": "5",
        "TRACE_ON": "true",
    }
    assert to_fields(Empty()) == {}


def test_a_name_of_its_own_is_kept_on_the_wire() -> None:
    assert to_fields(UnregisterClient(client_id="c")) == {"clientID": "c"}


def test_a_row_says_what_was_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "ROWS", {})

    @request(RequestCode.SUSPEND_CONSUMER, reply=Offset)
    class Rollback(Header, frozen=True):
        count: I32

    row = row_of(Rollback)
    assert row[:3] == (RequestCode.SUSPEND_CONSUMER, Rollback, Offset)
    assert decode_request(row, msgspec.Raw(b'{"count":"2"}')) == Rollback(2)


def test_a_second_declaration_of_a_code_fails() -> None:
    class Again(Header, frozen=True):
        pass

    with pytest.raises(ValueError, match="Again declares 30 a second time"):
        request(RequestCode.GET_MAX_OFFSET)(Again)
    assert ROWS[RequestCode.GET_MAX_OFFSET].header is GetMaxOffset


def test_a_second_declaration_of_a_header_fails() -> None:
    with pytest.raises(ValueError, match="GetMaxOffset declares 209 a second"):
        request(RequestCode.SUSPEND_CONSUMER)(GetMaxOffset)
    assert RequestCode.SUSPEND_CONSUMER not in ROWS


def test_a_code_that_is_not_in_the_list_cannot_be_declared() -> None:
    class Stray(Header, frozen=True):
        pass

    with pytest.raises(ValueError, match="99999"):
        request(99999)(Stray)
