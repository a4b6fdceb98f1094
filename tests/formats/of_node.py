"""What a node keeps in its own directory: log, offsets, routes, derived stores."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

from ropeway.gateway.lite.store import Known, Noted
from ropeway.gateway.lite.store import Store as LiteStore
from ropeway.gateway.node.derived_store import Checkpoint
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.pop import store as pops
from ropeway.routing.api import Broker, Group, Topic
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.file import open_log
from ropeway.storage.file import verify as verify_log
from ropeway.storage.file.offsets import open_offsets
from tests.contracts.log import TOPIC, begin, opened, read_all, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

from tests.formats.samples import EVER, LONG, NOON_MS, refuse, sample

# The embedded log: two sealed segments with indexes, the one that grows, the catalog.

AT = 5_000_000_000
"""Where the partitions of another topic begin."""
TEXTS = ["first", LONG, "second", LONG, "third", LONG]


def _check_log(directory: Path) -> None:
    found = verify_log(directory)
    refuse(found.problems)
    moved = found.records - len(TEXTS)
    indexes = {path.name: path.read_bytes() for path in directory.glob("*.index")}
    assert len(indexes) == 2

    async def main() -> None:
        log = open_log(directory, EVER)
        assert log.recovery.rebuilt == [], "indexes are used as they are"
        partition = await opened(log, 0)
        assert await read_all(partition) == TEXTS
        assert await partition.offset_at(NOON_MS + 2) == 2
        (one,) = await log.query(TOPIC, "key-2", 0, 1 << 60, 5)
        assert one.offset == 2
        assert await begin(partition, record("fourth")) == len(TEXTS)
        if moved:  # From version 2 on.
            partition = await opened(log, 0, "moved")
            assert (partition.first, partition.end) == (AT, AT + 1)
            assert await read_all(partition, AT) == ["moved"]
            assert (await opened(log, 1, "moved")).end == AT
        await log.close()

    asyncio.run(main())


@sample("embedded log", 2, _check_log)
def _make_log(directory: Path) -> None:
    async def main() -> None:
        log = open_log(directory, EVER, lambda: NOON_MS)
        await log.create(TOPIC, [0, 3])
        partition = await opened(log, 0)
        for number, text in enumerate(TEXTS):
            one = record(text, number, [f"key-{number}"])
            await begin(partition, one, store_ms=NOON_MS + number)
        await log.create("moved", [0, 1], begins={0: AT, 1: AT})
        await begin(await opened(log, 0, "moved"), record("moved"), store_ms=NOON_MS)
        await log.close()

    asyncio.run(main())


def _check_offsets(directory: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(directory)
        assert offsets.queues("kitchen", "orders") == {0: 17, 3: 1 << 50}
        await offsets.close()

    asyncio.run(main())


@sample("offsets", 1, _check_offsets)
def _make_offsets(directory: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(directory)
        offsets.commit("kitchen", "orders", 0, 17)
        offsets.commit("kitchen", "orders", 3, 1 << 50)
        await offsets.close()

    asyncio.run(main())


ROUTE = {"broker-0": [0, 1], "broker-1": [2]}
ORDERS = Topic(
    name="orders",
    read_queue_nums=3,
    write_queue_nums=3,
    attributes={"message.type": "DELAY"},
    route=ROUTE,
    generation=2,
    generations={"broker-1": 2},
)
KITCHEN = Group(name="kitchen", retry_max_times=3, consume_message_orderly=True)
BROKER = Broker(
    name="broker-0",
    node="node-a",
    cluster="DefaultCluster",
    addresses=("127.0.0.1:9876",),
    pid=7,
    incarnation="5f0c",
)


@asynccontextmanager
async def routes_in(directory: Path) -> AsyncIterator[EmbeddedRoutes]:
    routes = EmbeddedRoutes(directory / "routes.db")
    try:
        yield routes
    finally:
        await routes.close()


def _check_routes(directory: Path) -> None:
    async def main() -> None:
        async with routes_in(directory) as routes:
            assert routes.topics == {"orders": ORDERS}
            assert routes.groups == {"kitchen": KITCHEN}
            assert routes.settings == {("ORDER_TOPIC_CONFIG", "orders"): "broker-0:4"}

    asyncio.run(main())


@sample("embedded routes", 2, _check_routes)
def _make_routes(directory: Path) -> None:
    async def main() -> None:
        async with routes_in(directory) as routes:
            await routes.change_topic("orders", lambda _: ORDERS)
            await routes.change_group("kitchen", lambda _: KITCHEN)
            await routes.put_setting("ORDER_TOPIC_CONFIG", "orders", "broker-0:4")

    asyncio.run(main())


# Derived stores: RocksDB.

CHECKPOINT = Checkpoint(17, 0xDEADBEEF)
PLACE = ("kitchen", "orders", 3)
KEY = pops.key_of(PLACE, 5, NOON_MS, NOON_MS + 60_000)


def _check_pops(directory: Path) -> None:
    with closing(pops.Store.open(directory)) as store:
        assert store.checkpoint() == CHECKPOINT
        ((key, value),) = store.due(0, NOON_MS + 60_000, 9)
        assert pops.entry_of(key, value) == pops.Entry(
            PLACE, 5, NOON_MS, NOON_MS + 60_000, 2, 0b101, (5, 6, 9)
        )


@sample("store of pops", 1, _check_pops)
def _make_pops(directory: Path) -> None:
    with closing(pops.Store.open(directory)) as store:
        store.apply([(KEY, pops.value_of(2, 0b101, (5, 6, 9)))], CHECKPOINT)


def _check_timers(directory: Path) -> None:
    with closing(Index.open(directory)) as store:
        assert store.checkpoint() == CHECKPOINT
        entries, gone = store.due(0, NOON_MS + 1, 9, 1 << 20)
        assert [one.offset for one in entries] == [3, 4]
        assert entries[0][2:] == (NOON_MS, 200, 1, b"orders+ABC")
        assert gone == {4}


@sample("index of timers", 1, _check_timers)
def _make_timers(directory: Path) -> None:
    with closing(Index.open(directory)) as store:
        entries = [
            (NOON_MS, 3, NOON_MS, 200, 1, b"orders+ABC"),
            (NOON_MS + 1, 4, NOON_MS + 1, 100, 0, b"orders+DEF"),
        ]
        store.add(entries, [(NOON_MS + 1, b"orders+DEF")], CHECKPOINT)


LITE = Known("room-1", NOON_MS, {0: 8, 2: 5})


def _check_lite(directory: Path) -> None:
    with closing(LiteStore.open(directory)) as store:
        assert store.checkpoint_of("chats", 2) == CHECKPOINT
        assert store.topics("chats") == [LITE]
        assert store.offsets("chats", "room-1", 2, 0, 9) == [4]


@sample("store of lite topics", 1, _check_lite)
def _make_lite(directory: Path) -> None:
    with closing(LiteStore.open(directory)) as store:
        store.note("chats", 2, [Noted("room-1", 4, NOON_MS)], [LITE], CHECKPOINT)
