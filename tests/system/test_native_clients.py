"""Topics that native Pulsar clients and RocketMQ's clients share, on a real Pulsar."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any

import pulsar as native
import pytest
from msgspec import structs

from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendBatchMessage
from ropeway.gateway.wire.message import COMPRESSED_FLAG, TRANSACTION_MASK
from tests.remoting import looped
from tests.requests import batch_of, sending
from tests.system.native import (
    COMPRESSIONS,
    TOPIC,
    full_name,
    native_client,
    native_reader,
    node_on,
    pulled,
    share,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def text_of(message: Any) -> dict[str, str]:
    """A stored message's properties, without what brokers add to each."""
    ours = {properties.MSG_REGION, properties.TRACE_ON, properties.CLUSTER}
    pairs = properties.parse(message.properties)
    return {name: value for name, value in pairs.items() if name not in ours}


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@looped
async def test_a_native_message_is_a_rocketmq_message(
    pulsar: Pulsar,
    pulsar_namespace: str,
    tmp_path: Path,
    compression: str,
    batched: bool,
) -> None:
    def produce() -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(
                full_name(pulsar_namespace),
                compression_type=getattr(native.CompressionType, compression),
                batching_enabled=batched,
                batching_max_publish_delay_ms=1000,
            )
            for number in range(3):
                producer.send_async(
                    b"native %d" % number,
                    lambda *_: None,
                    properties={"TAGS": f"T{number}", "user": "value ü"},
                    partition_key=f"key-{number}",
                    event_timestamp=1_700_000_000_000 + number,
                )
            producer.flush()

    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        assert (await share(client)).code == ResponseCode.SUCCESS
        await asyncio.to_thread(produce)
        messages = await pulled(client, 3)
        again = await pulled(client, 3)
    assert [one.body for one in messages] == [b"native %d" % n for n in range(3)]
    assert [one.queue_offset for one in messages] == [0, 1, 2]
    assert [one.born_ms for one in messages] == [
        1_700_000_000_000 + n for n in range(3)
    ]
    assert all(one.store_ms > one.born_ms for one in messages)
    for number, one in enumerate(messages):
        pairs = text_of(one)
        unique = pairs.pop(properties.UNIQ_KEY)
        assert len(unique) == 32
        assert pairs == {
            "TAGS": f"T{number}",
            "user": "value ü",
            "KEYS": f"key-{number}",
        }
    assert again == messages, "a message never changes"


@looped
async def test_a_rocketmq_message_is_a_native_message(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    pairs = {"TAGS": "T", "KEYS": "k1 k2", "user": "value ü"}
    sharded = {"KEYS": "k1", properties.SHARDING_KEY: "customer 7"}
    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        await share(client)
        answers = [
            await client.ask(sending(TOPIC, pairs=pairs, flag=5), b"plain"),
            await client.ask(sending(TOPIC, pairs=sharded), b"sharded"),
            await client.ask(
                sending(TOPIC, sys_flag=COMPRESSED_FLAG), zlib.compress(b"long" * 9)
            ),
        ]
        sent = await pulled(client, 3)
    assert [int(one.fields["queueOffset"]) for one in answers] == [0, 1, 2]
    with native_reader(pulsar, pulsar_namespace) as get:
        plain, sharded_one, inflated = get(), get(), get()
    assert (plain.data(), plain.partition_key()) == (b"plain", "k1")
    assert plain.event_timestamp() == 1_700_000_000_000
    own = {properties.UNIQ_KEY: "0" * 32, "__BORNHOST": client.address}
    assert plain.properties() == {**pairs, **own, "ROCKETMQ_FLAG": "5"}
    assert sharded_one.partition_key() == "customer 7"
    assert sharded_one.properties() == {**sharded, **own}
    assert (inflated.data(), inflated.partition_key()) == (b"long" * 9, "")
    assert [one.body for one in sent] == [b"plain", b"sharded", b"long" * 9]
    assert (sent[0].flag, sent[0].born_ms) == (5, 1_700_000_000_000)
    assert sent[0].born_host == tuple_of(client.address)
    assert text_of(sent[0]) == {**pairs, properties.UNIQ_KEY: "0" * 32}
    assert text_of(sent[1]) == {**sharded, properties.UNIQ_KEY: "0" * 32}


def tuple_of(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)


@looped
async def test_a_batch_stays_one_and_its_messages_follow_each_other(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    pairs = {properties.UNIQ_KEY: "U", "KEYS": "k", "TAGS": "T"}
    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        await share(client)
        await client.ask(sending(TOPIC), b"before")
        header = SendBatchMessage(**{**structs.asdict(sending(TOPIC)), "batch": True})
        answer = await client.ask(header, batch_of(b"a", b"b", b"c", pairs=pairs))
        messages = await pulled(client, 4)
    assert int(answer.fields["queueOffset"]) == 1
    assert answer.fields["msgId"].count(",") == 2
    assert [one.body for one in messages] == [b"before", b"a", b"b", b"c"]
    assert [one.queue_offset for one in messages] == [0, 1, 2, 3]
    with native_reader(pulsar, pulsar_namespace) as get:
        found = [get() for _ in range(4)]
    assert [one.data() for one in found] == [b"before", b"a", b"b", b"c"]
    assert [one.message_id().batch_index() for one in found[1:]] == [0, 1, 2]
    assert {one.partition_key() for one in found[1:]} == {"k"}
    assert {one.event_timestamp() for one in found[1:]} == {1_700_000_000_000}


@looped
async def test_what_cannot_be_read_says_so_and_the_queue_goes_on(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    def produce() -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(
                full_name(pulsar_namespace),
                chunking_enabled=True,
                batching_enabled=False,
            )
            producer.send(b"x" * (6 << 20), properties={"TAGS": "T"})
            producer.send(b"after")

    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        await share(client)
        await asyncio.to_thread(produce)
        *chunks, after = await pulled(client, 3)
    assert [one.queue_offset for one in (*chunks, after)] == [0, 1, 2]
    for one in chunks:
        assert one.body == b""
        assert "one of 2 chunks; allowed: whole" in text_of(one)["PULSAR_UNREADABLE"]
    assert after.body == b"after"


@looped
async def test_tags_choose_among_messages_of_both_kinds(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    def produce() -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(full_name(pulsar_namespace))
            for tag in ("A", "B", "A"):
                producer.send(f"native {tag}".encode(), properties={"TAGS": tag})
            producer.send(b"native without")

    async with node_on(pulsar, pulsar_namespace, tmp_path) as (_, client):
        await share(client)
        for tag in ("A", "B"):
            await client.ask(
                sending(TOPIC, pairs={"TAGS": tag}), f"ours {tag}".encode()
            )
        await asyncio.to_thread(produce)
        messages = await pulled(client, 3, subscription="A")
        await pulled(client, 6)
    assert [one.body for one in messages] == [b"ours A", b"native A", b"native A"]
    assert [one.queue_offset for one in messages] == [0, 2, 4]


@looped
async def test_delayed_messages_come_when_due_and_only_brokers_end_transactions(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    async with node_on(pulsar, pulsar_namespace, tmp_path, delay_levels="1s") as (
        _,
        client,
    ):
        await share(client)
        await client.ask(sending(TOPIC, pairs={"DELAY": "1", "TAGS": "T"}), b"later")
        answer = await client.ask(sending(TOPIC), b"now")
        refused = await client.ask(sending(TOPIC, sys_flag=TRANSACTION_MASK), b"half")
        messages = await pulled(client, 2)
    assert int(answer.fields["queueOffset"]) == 0
    assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert "half message" in (refused.remark or "")
    assert [one.body for one in messages] == [b"now", b"later"]
    assert text_of(messages[1])["TAGS"] == "T"
