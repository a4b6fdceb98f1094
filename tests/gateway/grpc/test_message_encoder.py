"""Stored messages as consumers of gRPC get them."""

from __future__ import annotations

import msgspec
import pytest

from ropeway.gateway.grpc.message_encoder import message_of, resource
from ropeway.gateway.grpc.protocol import DigestType, Encoding, MessageType
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.message import COMPRESSED_FLAG, Message


def stored(**pairs: str) -> Message:
    return Message(
        topic="orders",
        queue_id=3,
        queue_offset=7,
        message_id=1,
        body=b"hello",
        properties=properties.dump(pairs),
        sys_flag=COMPRESSED_FLAG,
        born_ms=1_700_000_000_123,
        store_ms=1_700_000_000_456,
        reconsume_times=2,
    )


def test_a_message_keeps_what_its_producer_said():
    made = message_of(
        stored(TAGS="T", KEYS="a b", UNIQ_KEY="id", color="blue", TRACE_CONTEXT="trace")
    )
    system = made.system_properties
    assert dict(made.user_properties) == {"color": "blue"}
    assert (system.tag, list(system.keys), system.message_id) == ("T", ["a", "b"], "id")
    assert (system.queue_id, system.queue_offset) == (3, 7)
    assert system.delivery_attempt == 3
    assert system.trace_context == "trace"
    assert system.body_encoding == Encoding.GZIP
    assert system.body_digest.type == DigestType.MD5
    assert system.body_digest.checksum == "5D41402ABC4B2A76B9719D911017C592"
    assert system.born_timestamp.nanos == 123_000_000
    assert not system.HasField("message_group")
    assert not system.HasField("delivery_timestamp")


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        ({}, MessageType.NORMAL),
        ({"__SHARDINGKEY": "g"}, MessageType.FIFO),
        ({"TIMER_DELIVER_MS": "1700000000000"}, MessageType.DELAY),
        ({"TRAN_MSG": "true"}, MessageType.TRANSACTION),
    ],
)
def test_a_message_tells_its_type(pairs, kind):
    assert message_of(stored(**pairs)).system_properties.message_type == kind


def test_a_message_tells_where_it_was_first():
    retried = stored(
        RETRY_TOPIC="first", DLQ_ORIGIN_TOPIC="t", DLQ_ORIGIN_MESSAGE_ID="i"
    )
    assert message_of(retried).topic.name == "orders"
    retried = msgspec.structs.replace(retried, topic="%RETRY%g")
    made = message_of(retried)
    assert made.topic.name == "first"
    dead = made.system_properties.dead_letter_queue
    assert (dead.topic, dead.message_id) == ("t", "i")
    assert message_of(retried, "asked").topic.name == "asked"


def test_a_name_with_a_namespace_is_taken_apart():
    assert resource("shop%orders").resource_namespace == "shop"
    assert resource("%RETRY%group").name == "%RETRY%group"
