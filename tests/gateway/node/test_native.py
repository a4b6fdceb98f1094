"""Native messages and RocketMQ's: what each side sees of the other's."""

from __future__ import annotations

import tracemalloc
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from ropeway.gateway.node.native import MAX_BODY_BYTES, Native
from ropeway.gateway.wire import message, properties
from ropeway.routing.api import Topic
from ropeway.storage.native import NativeMessage, NativePosition

SUFFIX = properties.dump({"CLUSTER": "c"})
UNIQUE = "A" * 32
ROUTE = {"broker-1": [0, 1], "broker-0": [2, 3]}


def converter(attributes: dict[str, str] | None = None) -> Native:
    setup = Topic(
        name="orders",
        read_queue_nums=2,
        write_queue_nums=2,
        perm=6,
        route=ROUTE,
        attributes=attributes or {},
    )
    routes: Any = SimpleNamespace(topics={"orders": setup})
    return Native("broker-0", routes, SUFFIX, lambda: message.pack_host("10.0.0.1", 9))


def read(
    given: dict[str, str], *, topic: str = "orders", **more: Any
) -> tuple[message.Message, dict[str, str], int, list[str]]:
    """What RocketMQ's clients see, taken apart; tag hash and keys are the index's."""
    native = NativeMessage(b"body", given, event_ms=1000, **more)
    record = converter().record(native, NativePosition(topic, 3, 17, 2000, UNIQUE))
    stored = message.decode(record[0])
    pairs = properties.parse(stored.properties)
    assert pairs.pop("CLUSTER") == "c", "what brokers add is added"
    return stored, pairs, record[1], list(record[2])


def stored(pairs: dict[str, str], **more: Any) -> bytes:
    fields: dict[str, Any] = {"body": b"body", "born_ms": 1000, **more}
    return message.encode(
        message.Message(
            topic="orders",
            queue_id=1,
            queue_offset=999,
            message_id=1,
            properties=properties.dump(pairs) + SUFFIX,
            **fields,
        )
    )


def test_a_native_message_knows_its_place():
    one, pairs, tag_hash, keys = read({"user": "ü"})
    assert (one.topic, one.queue_id, one.queue_offset) == ("orders", 1, 17)
    assert one.message_id == 3 << 52 | 17
    assert (one.born_ms, one.store_ms, one.store_host) == (1000, 2000, ("10.0.0.1", 9))
    assert one.born_host == ("0.0.0.0", 0)
    assert (one.body, one.body_crc) == (b"body", message.crc(b"body"))
    assert pairs == {"user": "ü", "UNIQ_KEY": UNIQUE}
    assert (tag_hash, keys) == (0, [UNIQUE])


def test_a_partition_that_no_route_has_is_the_queue_of_its_number():
    assert read({}, topic="gone")[0].queue_id == 3


def test_tags_and_keys_of_a_native_producer_are_tags_and_keys():
    _, pairs, tag_hash, keys = read({"TAGS": "T", "KEYS": "a b", "UNIQ_KEY": "u"})
    assert pairs == {"TAGS": "T", "KEYS": "a b", "UNIQ_KEY": "u"}
    assert tag_hash == properties.tag_hash("T")
    assert keys == ["a", "b", "u"]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, {"KEYS": "k"}),
        ({"KEYS": "k other"}, {"KEYS": "k other"}),
        ({"KEYS": "other"}, {"KEYS": "other", "__SHARDINGKEY": "k"}),
        ({"__SHARDINGKEY": "s"}, {"__SHARDINGKEY": "s"}),
    ],
)
def test_a_native_key_is_found_as_keys_or_as_sharding_key(given, seen):
    assert read(given, key="k")[1] == {**seen, "UNIQ_KEY": UNIQUE}


def test_what_rocketmq_ends_values_by_is_taken_out_of_native_ones():
    _, pairs, _, _ = read({"a\x01b": "c\x02d"}, key="k\x02")
    assert pairs == {"ab": "cd", "KEYS": "k", "UNIQ_KEY": UNIQUE}


def test_of_too_many_properties_the_small_ones_and_the_keys_are_kept():
    given = {f"p{n}": "x" * n for n in range(1000)}
    one, pairs, _, keys = read({**given, "KEYS": "y" * 2000, "TAGS": "T"})
    assert len(one.properties) <= message.MAX_PROPERTIES_BYTES
    assert len(one.properties) > message.MAX_PROPERTIES_BYTES - 1000
    assert (pairs["KEYS"], pairs["TAGS"]) == ("y" * 2000, "T")
    assert keys == ["y" * 2000, UNIQUE]
    kept = [name for name in given if name in pairs]
    assert kept == [f"p{n}" for n in range(1, len(kept) + 1)]


@pytest.mark.parametrize("text", ["", "nobody", "1.2.3.4:x", "1.2.3.4:70000", "::1"])
def test_a_born_host_that_is_none_is_nowhere(text):
    assert read({"__BORNHOST": text})[0].born_host == ("0.0.0.0", 0)


@pytest.mark.parametrize(
    ("text", "flag"), [("7", 7), ("x", 0), (str(1 << 40), 0), ("", 0)]
)
def test_a_flag_that_is_none_is_0(text, flag):
    assert read({"ROCKETMQ_FLAG": text})[0].flag == flag


def test_what_rocketmq_sends_comes_back_as_it_was():
    pairs = {"TAGS": "T", "KEYS": "a b", "UNIQ_KEY": "u", "__SHARDINGKEY": "s"}
    sent = stored(pairs, flag=-5, born_host=("::1", 77))
    (native,) = converter().native([sent])
    assert (native.body, native.key, native.event_ms) == (b"body", "s", 1000)
    assert "CLUSTER" not in native.properties, "what brokers add is no news"
    one, seen, _, _ = read(dict(native.properties), key=native.key)
    assert seen == pairs
    assert (one.flag, one.born_host) == (-5, ("::1", 77))


@pytest.mark.parametrize(
    ("pairs", "key"), [({}, None), ({"KEYS": "a b"}, "a"), ({"KEYS": " "}, None)]
)
def test_the_first_word_of_keys_is_the_native_key(pairs, key):
    assert converter().native([stored(pairs)])[0].key == key


@pytest.mark.parametrize("kind", [0, 3])
def test_native_clients_get_bodies_inflated(kind):
    flags = message.COMPRESSED_FLAG | kind << 8
    sent = stored({}, body=zlib.compress(b"long" * 100), sys_flag=flags)
    assert converter().native([sent])[0].body == b"long" * 100


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (1, b"lz4"),
        (2, b"zstd"),
        (3, b"not zlib"),
        (3, zlib.compress(b"x" * 100)[:-3]),
        (0, zlib.compress(bytes(MAX_BODY_BYTES + 1))),
    ],
)
def test_a_body_that_is_not_inflated_says_so_and_is_compressed_for_rocketmq(kind, body):
    flags = message.COMPRESSED_FLAG | kind << 8
    (native,) = converter().native([stored({}, body=body, sys_flag=flags)])
    assert native.body == body
    assert native.properties["ROCKETMQ_COMPRESSION"] == str(kind)
    one, pairs, _, _ = read(dict(native.properties))
    assert one.sys_flag & (message.COMPRESSED_FLAG | message.COMPRESSION_TYPE_MASK) == (
        flags
    )
    assert pairs == {"UNIQ_KEY": UNIQUE}


def test_a_batch_of_bombs_becomes_no_longer_than_one_body_may():
    bomb = zlib.compress(bytes(MAX_BODY_BYTES // 2))
    sent = stored({}, body=bomb, sys_flag=message.COMPRESSED_FLAG)
    plain = stored({}, body=b"plain")
    tracemalloc.start()
    try:
        made = converter().native([sent] * 1000 + [plain])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(one.body) for one in made[:2]] == [MAX_BODY_BYTES // 2] * 2
    assert {one.body for one in made[2:-1]} == {bomb}
    assert {one.properties["ROCKETMQ_COMPRESSION"] for one in made[2:-1]} == {"0"}
    assert made[-1].body == b"plain"
    assert peak < 6 * MAX_BODY_BYTES


@pytest.mark.parametrize("text", ["", "zlib", "-1", "4"])
def test_a_compression_that_is_none_is_none(text):
    assert read({"ROCKETMQ_COMPRESSION": text})[0].sys_flag == 0


def test_a_compacted_topics_messages_have_all_of_their_keys_for_a_key():
    pairs = {"KEYS": "a b", properties.SHARDING_KEY: "s"}
    (native,) = converter({"cleanup.policy": "COMPACTION"}).native([stored(pairs)])
    assert native.key == "a b"
    assert native.properties[properties.SHARDING_KEY] == "s"
    _, again, _, _ = read({"KEYS": "a b"}, key="a b")
    assert (again["KEYS"], properties.SHARDING_KEY in again) == ("a b", False)


def test_a_native_producer_makes_up_no_receipt():
    """Whoever pops the message takes it for its own, and would acknowledge another."""
    _, pairs, _, _ = read({"POP_CK": "0 1 1 0 0 broker-0 0 7", "K": "v"})
    assert pairs == {"K": "v", "UNIQ_KEY": UNIQUE}
