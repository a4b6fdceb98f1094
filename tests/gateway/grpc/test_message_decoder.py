"""Messages that cannot be stored as they are."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from ropeway.gateway.config import Config
from ropeway.gateway.grpc.message_decoder import outgoing, text
from ropeway.gateway.grpc.protocol import (
    Code,
    Duration,
    Encoding,
    Message,
    MessageType,
    Timestamp,
)
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node import message_types
from ropeway.gateway.wire import message as wire_message
from tests.gateway.grpc.thin import message

NODE: Any = SimpleNamespace(
    config=Config(), timer=SimpleNamespace(max_delay_ms=3_600_000)
)


def refusal(sent: Message) -> Code:
    with pytest.raises(RefusedError) as refused:
        outgoing(NODE, "orders", sent)
    return refused.value.code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"body": b""}, Code.MESSAGE_BODY_EMPTY),
        ({"body": b"x" * (4 << 20) + b"x"}, Code.MESSAGE_BODY_TOO_LARGE),
        ({"message_id": " "}, Code.ILLEGAL_MESSAGE_ID),
        ({"tag": "a|b"}, Code.ILLEGAL_MESSAGE_TAG),
        ({"keys": ["a\x02b"]}, Code.ILLEGAL_MESSAGE_KEY),
        ({"pairs": {"UNIQ_KEY": "x"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        ({"pairs": {"a\x01": "x"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        ({"pairs": {"a": "x\x02"}}, Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (
            {"pairs": {str(n): "x" for n in range(129)}},
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
        ),
        ({"pairs": {"a": "x" * 16384}}, Code.MESSAGE_PROPERTIES_TOO_LARGE),
        ({"message_group": "x" * 65}, Code.ILLEGAL_MESSAGE_GROUP),
        (
            {"message_type": MessageType.FIFO},
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        ),
        (
            {"message_type": MessageType.DELAY},
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        ),
        (
            {"delivery_timestamp": Timestamp(seconds=1 << 33)},
            Code.ILLEGAL_DELIVERY_TIME,
        ),
        ({"delivery_timestamp": Timestamp()}, Code.ILLEGAL_DELIVERY_TIME),
        (
            {"message_type": MessageType.LITE},
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        ),
        ({"lite_topic": "a b"}, Code.ILLEGAL_LITE_TOPIC),
        (
            {"message_type": MessageType.PRIORITY},
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        ),
        ({"message_type": MessageType.PRIORITY, "priority": -1}, Code.BAD_REQUEST),
        (
            {
                "message_type": MessageType.TRANSACTION,
                "orphaned_transaction_recovery_duration": Duration(seconds=3601),
            },
            Code.BAD_REQUEST,
        ),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_own_code(given, code):
    assert refusal(message("orders", **given)) == code


def test_a_message_keeps_what_it_says():
    sent = message(
        "orders",
        tag="T",
        body_encoding=Encoding.GZIP,
        message_type=MessageType.TRANSACTION,
        orphaned_transaction_recovery_duration=Duration(seconds=30),
        message_group="größe",
        born_host="vm",
    )
    made = outgoing(NODE, "orders", sent)
    assert made.kind == message_types.TRANSACTION
    assert made.sys_flag & wire_message.COMPRESSED_FLAG
    assert made.pairs["PGROUP"] == "orders"
    assert made.pairs["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "30"
    assert made.pairs["__SHARDINGKEY"] == "größe"
    assert made.pairs["__BORNHOST"] == "vm"


@pytest.mark.parametrize("word", ["   ", "a\x01b", "a\x7f"])
def test_words_that_would_break_properties_are_refused(word):
    with pytest.raises(RefusedError) as refused:
        text("key", word, Code.ILLEGAL_MESSAGE_KEY)
    assert refused.value.code == Code.ILLEGAL_MESSAGE_KEY
    assert text("key", "größe 漢", Code.ILLEGAL_MESSAGE_KEY) == "größe 漢"


def test_a_tag_has_no_bar():
    assert refusal(message("orders", tag="a|b")) == Code.ILLEGAL_MESSAGE_TAG


@pytest.mark.parametrize("is_half", [False, True])
def test_the_type_of_a_message_is_that_of_its_properties(is_half):
    marks = {
        "lite_topic": "lite",
        "priority": 1,
        "message_group": "g",
        "delivery_timestamp": Timestamp(seconds=2_000_000_000),
    }
    node = SimpleNamespace(config=Config(), timer=SimpleNamespace(max_delay_ms=10**15))
    kind = MessageType.TRANSACTION if is_half else MessageType.NORMAL
    for count in range(len(marks) + 1):
        for some in combinations(marks, count):
            given = {name: marks[name] for name in some}
            made = outgoing(
                node, "orders", message("orders", message_type=kind, **given)
            )
            assert made.kind == message_types.type_of(made.pairs)
