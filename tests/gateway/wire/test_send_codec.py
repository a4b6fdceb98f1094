"""Plain messages: what is one, and that it is stored and answered like any other."""

from __future__ import annotations

import msgspec
import pytest

from ropeway.gateway.wire import message, message_id, properties
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    ROPEWAY_VERSION,
    RequestCode,
)
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.frame import JSON, decode_envelope, encode_frame
from ropeway.gateway.wire.header import decode_request, row_of, to_fields

SUFFIX = properties.dump({"CLUSTER": "c"})
V4 = message.pack_host("10.0.0.1", 1)
V6 = message.pack_host("::1", 2)


@pytest.fixture(params=["python", "compiled"])
def form(request):
    """Both forms of a function, by its name."""
    number = ["python", "compiled"].index(request.param)
    if may_be_compiled.twins["record_of"][number] is None:
        pytest.skip("not built here")
    return lambda name: may_be_compiled.twins[name][number]


def record(
    make, text: str, host: bytes = V4, sys_flag: int = 0, *, only_plain: bool = True
):
    magic, name = message.topic_field("orders")
    return make(
        *(magic, name, 3, sys_flag, 11, host, 13, V4, 2, SUFFIX),
        *(7, 0x10007, 5, b"body", text, only_plain),
    )


@pytest.mark.parametrize("host", [V4, V6])
def test_a_plain_message_decodes_to_what_was_sent(form, host):
    text = properties.dump({"UNIQ_KEY": "u", "TAGS": "täg", "KEYS": "a b", "x": "y"})
    made = record(form("record_of"), text, host, message.COMPRESSED_FLAG)
    assert made is not None
    data, tag_hash, keys = made
    found = message.decode(data)
    assert (found.topic, found.queue_id, found.queue_offset) == ("orders", 3, 7)
    assert (found.message_id, found.flag, found.body) == (0x10007, 5, b"body")
    assert (found.born_ms, found.store_ms, found.reconsume_times) == (11, 13, 2)
    assert found.born_host == (("10.0.0.1", 1) if host is V4 else ("::1", 2))
    assert found.store_host == ("10.0.0.1", 1)
    assert found.properties == text + SUFFIX
    assert found.sys_flag & message.COMPRESSED_FLAG
    assert found.body_crc == message.crc(b"body")
    assert tag_hash == properties.tag_hash("täg")
    assert keys == ["a", "b", "u"]


def test_an_end_that_is_missing_is_put_in(form):
    made = record(form("record_of"), "UNIQ_KEY\1u")
    assert made is not None
    assert message.decode(made[0]).properties == "UNIQ_KEY\1u\2" + SUFFIX


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TAGS\1a\2",
        "UNIQ_KEY\1\2",
        *(f"UNIQ_KEY\1u\2{name}\0011\2" for name in sorted(properties.RARE)),
        "UNIQ_KEY\1u\2x\1\ud800\2",
        "UNIQ_KEY\1u\2x\1" + "y" * message.MAX_PROPERTIES_BYTES,
    ],
)
def test_a_message_that_needs_more_is_not_plain(form, text):
    assert record(form("record_of"), text) is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [("", []), ("KEYS\1a b\2", ["a", "b"]), ("UNIQ_KEY\1u\2DELAY\0011\2", ["u"])],
)
def test_any_message_that_can_be_laid_out_is_where_that_is_wanted(form, text, keys):
    data, tag_hash, found = record(form("record_of"), text, only_plain=False)
    assert message.decode(data).properties == text + SUFFIX
    assert (tag_hash, found) == (0, keys)


@pytest.mark.parametrize(
    "text", ["x\1\ud800\2", "x\1" + "y" * message.MAX_PROPERTIES_BYTES]
)
def test_what_cannot_be_laid_out_is_no_record(form, text):
    assert record(form("record_of"), text, only_plain=False) is None


@pytest.mark.parametrize("handle", ["", "djEgdCBi"])
def test_the_answer_is_the_one_that_any_command_would_get(form, handle):
    prefix = message_id.address_prefix("10.0.0.1", 9876)
    expected = encode_frame(
        0,
        9,
        flag=RESPONSE_FLAG,
        fields=to_fields(
            SendReply(
                msg_id=f"{prefix}{77:016X}",
                queue_id=3,
                queue_offset=12,
                transaction_id='u"k',
                msg_region="DefaultRegion",
                trace_on=True,
                recall_handle=handle or None,
            )
        ),
    )
    got = form("sent_frame")(
        *(3, 'u"k', prefix.encode(), 77, 1, b'"DefaultRegion"', 12, 9),
        ROPEWAY_VERSION,
        handle.encode(),
    )
    assert got[:8] == expected[:8]
    assert msgspec.json.decode(got[8:]) == msgspec.json.decode(expected[8:])


def test_of_a_batch_all_ids_are_answered(form):
    got = form("sent_frame")(0, "u", b"7F", 0xFF, 3, b'"r"', 1, 2, 3, b"")
    assert msgspec.json.decode(got[8:])["extFields"]["msgId"] == (
        "7F00000000000000FF,7F0000000000000100,7F0000000000000101"
    )


def header_of(code: int = RequestCode.SEND_MESSAGE_V2, flag: int = 0, **changes):
    send = SendMessageV2(
        producer_group="g",
        topic="orders",
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=3,
        sys_flag=1,
        born_timestamp=1795248367175,
        flag=5,
        properties="UNIQ_KEY\1u\2",
    )
    fields = to_fields(msgspec.structs.replace(send, **changes))
    frame = encode_frame(code, 9, flag=flag, fields=fields)
    return frame[8:]


@pytest.mark.parametrize("one_way", [False, True])
def test_the_header_of_a_send_is_read_at_once(form, one_way):
    header = header_of(flag=one_way * ONE_WAY_FLAG)
    opaque, is_one_way, read, claims = form("read_send")(header, SendMessageV2)
    assert (opaque, is_one_way, claims) == (9, one_way, None)
    assert read == decode_request(
        row_of(SendMessageV2), decode_envelope(JSON, header).ext_fields
    )


def test_who_sent_it_is_read_with_it(form):
    fields = {"AccessKey": "k", "Signature": "s=", "ns": "tenant"}
    header = header_of().replace(
        b'{"a":', b"%b," % msgspec.json.encode(fields)[:-1] + b'"a":'
    )
    *_, claims = form("read_send")(header, SendMessageV2)
    assert claims[:5] == ("k", "s=", "", "", "tenant")
    assert claims[5].startswith(b"kgordersTBW102831")
    assert claims[5].endswith(b"UNIQ_KEY\1u\2falsefalsetenant")


@pytest.mark.parametrize(
    "header",
    [
        header_of(batch=True),
        header_of(flag=RESPONSE_FLAG),
        header_of(RequestCode.SEND_MESSAGE),
        header_of(RequestCode.SEND_BATCH_MESSAGE),
        header_of().replace(b'"3"', b'"three"'),
        header_of()[:-1],
        b"",
    ],
)
def test_other_headers_are_left_to_whoever_can_complain(form, header):
    assert form("read_send")(header, SendMessageV2) is None
