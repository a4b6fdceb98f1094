"""What others read as well: notes, sealed files, Pulsar, ZooKeeper, handles."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.node import record_builder
from ropeway.gateway.node.batches import records as batches
from ropeway.gateway.node.transactions import end_records
from ropeway.gateway.node.transactions.end_records import End, Ended
from ropeway.gateway.pop import store as pops
from ropeway.gateway.wire import message, message_id, recall, receipt
from ropeway.routing.zookeeper import codec
from ropeway.storage.pulsar import pack, state_entry
from ropeway.storage.tiered.listing import listed
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.posix import PosixProvider
from ropeway.storage.tiered.verify import verify as verify_tier
from tests.contracts.log import TOPIC
from tests.storage.compaction import logs as compacted_logs
from tests.storage.pulsar.test_state_entry import stored as state_as_stored
from tests.storage.tiered import segments as tier_segments

if TYPE_CHECKING:
    from pathlib import Path

from tests.formats.of_node import BROKER, KEY, KITCHEN, ORDERS
from tests.formats.samples import EVER, NOON_MS, refuse, sample

# What a broker writes for itself into system topics.

DECIDED = batches.Decided(
    "spark", 4, NOON_MS, {"broker-0": [1, 2]}, {"orders": {0: 9}}, "alice"
)
ENDED = Ended(End.COMMITTED, (4, 9), 12)
HOST = message.pack_host("127.0.0.1", 10911)


def served(name: str) -> Any:
    """As much of a topic as the makers of records look at."""
    return SimpleNamespace(
        magic=message.topic_field(name)[0],
        name_field=message.topic_field(name)[1],
        id_bases=[0],
        partitions=[SimpleNamespace(next_offset=5)],
    )


def _check_notes(directory: Path) -> None:
    pop = record_builder.read_note((directory / "pop").read_bytes())
    assert list(pops.load(pop.body)) == [(KEY, b"value"), (b"gone", b"")]
    batch = (directory / "batch").read_bytes()
    assert batches.read_entry(batch) == (5, DECIDED)
    assert end_records.parse((directory / "ended").read_bytes()) == ENDED


@sample("notes in system topics", record_builder.NOTE_FORMAT, _check_notes)
def _make_notes(directory: Path) -> None:
    body = pops.dump([(KEY, b"value"), (b"gone", b"")])
    pop = record_builder.make_note(served("pops"), 5, NOON_MS, HOST, body)
    batch = batches.entry_record(served("batches"), NOON_MS, DECIDED, HOST)
    ended = end_records.record(ENDED, served("ends"), 5, NOON_MS, HOST)
    for name, one in {"pop": pop, "batch": batch, "ended": ended}.items():
        (directory / name).write_bytes(bytes(one[0]))


# Immutable files of a partition's records.


def _check_compaction(directory: Path) -> None:
    async def main() -> None:
        async with compacted_logs.closing(
            compacted_logs.compacted(directory, file_settings=EVER)
        ) as log:
            partition = await compacted_logs.partition_of(log)
            assert await compacted_logs.stored(partition) == {
                1: "b=1",
                2: "a=2",
                3: "c=3",
            }

    asyncio.run(main())


@sample("compacted records", 2, _check_compaction)
def _make_compaction(directory: Path) -> None:
    async def main() -> None:
        async with compacted_logs.closing(
            compacted_logs.compacted(directory, file_settings=EVER)
        ) as log:
            partition = await compacted_logs.partition_of(log)
            await compacted_logs.send(partition, ["a=1", "b=1", "a=2"])
            await log.compact(TOPIC)
            await compacted_logs.send(partition, ["c=3"])

    asyncio.run(main())


def _check_tier(directory: Path) -> None:
    async def main() -> None:
        provider = PosixProvider(directory / "objects")
        found = await verify_tier(provider)
        refuse(found.problems)
        assert (found.segments, found.records) == (2, 5)
        for name in (await listed(provider)).whole:
            got = [
                (at, bytes(one))
                async for at, _, one in tier_segments.records(provider, name)
            ]
            assert [bytes(one)[4:] for _, one in got] in TIERED
        await provider.close()

    asyncio.run(main())
    with closing(Metadata(directory)):
        pass


TIERED = [[b"a", b"b", b"c"], [b"d", b"e"]]


@sample("tiered segments", 2, _check_tier)
def _make_tier(directory: Path) -> None:
    async def main() -> None:
        (directory / "objects").mkdir()
        provider = PosixProvider(directory / "objects")
        await tier_segments.put(provider, tier_segments.encoded(["a", "b", "c"]))
        zstd = tier_segments.encoded(["d", "e"], 3, "zstd")
        await tier_segments.put(provider, zstd)
        await provider.close()

    asyncio.run(main())
    with closing(Metadata(directory)):
        pass


# What stands in Pulsar and in ZooKeeper.

FACTS: dict[str, state_entry.Change] = {
    "kitchen/orders/0": "17",
    "gone": 77,
    "old": None,
}


def _check_pulsar(directory: Path) -> None:
    one = pack.decode(memoryview((directory / "pack").read_bytes()))
    assert (one.base_offset, one.count, one.tags.tolist()) == (7, 2, [5, 0])
    assert [bytes(one.record(at)) for at in range(2)] == [b"first", b"second"]
    marker = pack.decode(memoryview((directory / "marker").read_bytes()))
    assert (marker.base_offset, marker.count) == (9, 0)
    entry = state_as_stored((directory / "state").read_bytes(), len(FACTS))
    assert state_entry.decode(entry) == FACTS


@sample("packs and state on Pulsar", 1, _check_pulsar)
def _make_pulsar(directory: Path) -> None:
    records = [(b"first", 5, ["key"]), (b"second", 0, [])]
    data = pack.encode([(records, NOON_MS, None, 0)], 7)
    ((_, state),) = state_entry.encode(FACTS)
    (directory / "pack").write_bytes(data)
    (directory / "marker").write_bytes(pack.encode_marker(9))
    (directory / "state").write_bytes(state)


def _check_zookeeper(directory: Path) -> None:
    def held(name: str) -> bytes:
        return (directory / name).read_bytes()

    assert held("version") == b"1"
    assert codec.load("topics", "orders", held("topic")) == ORDERS
    assert codec.load("groups", "kitchen", held("group")) == KITCHEN
    setting = codec.node_name("ORDER_TOPIC_CONFIG", "orders")
    assert codec.load("settings", setting, held("setting")) == "broker-0:4"
    assert codec.load_broker(held("broker")) == BROKER


@sample("nodes in ZooKeeper", 1, _check_zookeeper)
def _make_zookeeper(directory: Path) -> None:
    (directory / "version").write_bytes(b"1")
    values: dict[str, Any] = {
        "topic": ORDERS,
        "group": KITCHEN,
        "setting": "broker-0:4",
        "broker": BROKER,
    }
    for name, value in values.items():
        (directory / name).write_bytes(codec.dump(value))


# What clients and people keep.

RECEIPT = receipt.Receipt(5, NOON_MS, 60_000, 0, receipt.NORMAL, "broker-0", 3)
RECALL = recall.RecallHandle("orders", "broker-0", NOON_MS, "7F000001")


def _check_handles(directory: Path) -> None:
    found = dict(
        line.split("\t") for line in (directory / "handles").read_text().splitlines()
    )
    assert receipt.parse(found["receipt"]) == RECEIPT
    assert recall.parse(found["recall"]) == RECALL
    at = message_id.parse_offset_msg_id(found["offsetMsgId"])
    assert (at.host, at.port) == ("127.0.0.1", 10911)
    unpacked = message_id.unpack(at.message_id)
    assert unpacked == message_id.MessageId(retry=True, partition=3, offset=9)


@sample("handles and message ids", 1, _check_handles)
def _make_handles(directory: Path) -> None:
    number = message_id.pack(3, 9, retry=True)
    handles = {
        "receipt": receipt.dump(RECEIPT, 9),
        "recall": recall.dump(RECALL).decode(),
        "offsetMsgId": message_id.format_offset_msg_id("127.0.0.1", 10911, number),
    }
    lines = [f"{name}\t{handle}\n" for name, handle in handles.items()]
    (directory / "handles").write_text("".join(lines))


def some_contexts() -> Contexts:
    return Contexts("prod", {"prod": Context(name_server="mq:9876", tls=True)})


def _check_contexts(directory: Path) -> None:
    with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(directory)}):
        assert context_file.load() == some_contexts()


@sample("contexts of the command line", context_file.VERSION, _check_contexts)
def _make_contexts(directory: Path) -> None:
    with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(directory)}):
        context_file.save(some_contexts())
