"""What every route store must do; a fixture makes it a backend's test."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ropeway.routing.api import Broker, Group, Topic
from tests.contracts.deleted_topics import DeletedTopicsContract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ropeway.routing.api import RouteStore

    Opener = Callable[[], Awaitable[RouteStore]]

ORDERS = Topic(
    name="orders",
    read_queue_nums=2,
    write_queue_nums=1,
    attributes={"message.type": "FIFO"},
    route={"broker-0": [1023, 0]},
)
KITCHEN = Group(name="kitchen", consume_message_orderly=True, retry_max_times=-1)
BROKER = Broker(
    name="broker-0", node="n", cluster="c", addresses=("127.0.0.1:1", "[::1]:2"), pid=1
)

TIMEOUT_S = 60


async def until(condition: Callable[[], object]) -> None:
    """Return when something is so."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - whatever the condition is
            await asyncio.sleep(0.005)


@asynccontextmanager
async def opened(open_routes: Opener, count: int) -> AsyncIterator[list[RouteStore]]:
    """Several stores, as several nodes have them."""
    stores = [await open_routes() for _ in range(count)]
    try:
        yield stores
    finally:
        for one in stores:
            await one.close()


def node(name: str, broker: str = "broker-0") -> Broker:
    """A node of a broker."""
    return replace(BROKER, name=broker, node=name)


async def grow(routes: RouteStore, times: int) -> None:
    """Add to a number that a topic has, again and again."""

    def add_one(old: Topic | None) -> Topic:
        grown = old.read_queue_nums + 1 if old else 1
        return Topic(name="count", read_queue_nums=grown, write_queue_nums=1)

    for _ in range(times):
        await routes.change_topic("count", add_one)


async def put_topic(routes: RouteStore, topic: Topic) -> None:
    """Create or replace a topic."""
    await routes.change_topic(topic.name, lambda _: topic)


async def put_group(routes: RouteStore, group: Group) -> None:
    """Create or replace a group."""
    await routes.change_group(group.name, lambda _: group)


class RoutesContract(DeletedTopicsContract):
    """Laws of `routing.api.RouteStore`. `open_routes` opens the same one again."""

    @pytest.fixture
    def open_routes(self) -> Opener:
        """A function that opens the store; what was put before is there."""
        raise NotImplementedError

    def test_a_new_store_is_empty(self, open_routes: Opener) -> None:
        async def main() -> None:
            routes = await open_routes()
            assert (routes.topics, routes.groups, routes.settings) == ({}, {}, {})
            assert routes.brokers == {}
            await routes.close()

        asyncio.run(main())

    def test_what_was_put_is_seen_at_once_and_outlives_a_close(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            routes = await open_routes()
            await put_topic(routes, ORDERS)
            await put_group(routes, KITCHEN)
            await routes.put_setting("space", "key", "value")
            for store in (routes, await open_routes()):
                assert store.topics == {"orders": ORDERS}
                assert store.groups == {"kitchen": KITCHEN}
                assert store.settings == {("space", "key"): "value"}
                await store.close()
                await store.close()

        asyncio.run(main())

    def test_a_change_gets_what_is_there_and_replaces_it(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            routes = await open_routes()
            wider = Topic(name="orders", read_queue_nums=9, write_queue_nums=9)
            given: list[object] = []

            def widen(old: Topic | None) -> Topic:
                given.append(old)
                return wider if old else ORDERS

            def loosen(old: Group | None) -> Group:
                given.append(old)
                return Group(name="kitchen") if old else KITCHEN

            for _ in range(2):
                await routes.change_topic("orders", widen)
                await routes.change_group("kitchen", loosen)
            assert given == [None, None, ORDERS, KITCHEN]
            for value in ("old", "new"):
                await routes.put_setting("space", "key", value)
            for store in (routes, await open_routes()):
                assert store.topics == {"orders": wider}
                assert store.groups == {"kitchen": Group(name="kitchen")}
                assert store.settings == {("space", "key"): "new"}
                await store.close()

        asyncio.run(main())

    def test_a_change_that_raises_changes_nothing(self, open_routes: Opener) -> None:
        async def main() -> None:
            routes = await open_routes()
            told: list[str] = []
            routes.watch_topics(told.append)

            def refuse(_: object) -> None:
                raise ValueError("no")

            for change in (
                routes.change_topic("orders", refuse),
                routes.change_group("kitchen", refuse),
                routes.change_setting("space", "key", refuse),
            ):
                with pytest.raises(ValueError, match="no"):
                    await change
            assert (routes.topics, routes.groups, told) == ({}, {}, [])
            await put_topic(routes, ORDERS)
            assert routes.topics == {"orders": ORDERS}
            await routes.close()

        asyncio.run(main())

    def test_what_was_deleted_is_gone_and_deleting_nothing_is_fine(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            routes = await open_routes()
            await put_topic(routes, ORDERS)
            await put_group(routes, KITCHEN)
            await routes.put_setting("space", "key", "value")
            for _ in range(2):
                await routes.change_topic("orders", lambda _: None)
                await routes.change_group("kitchen", lambda _: None)
                await routes.put_setting("space", "key", None)
            for store in (routes, await open_routes()):
                assert (store.topics, store.groups, store.settings) == ({}, {}, {})
                await store.close()

        asyncio.run(main())

    def test_watchers_are_told_of_topics_after_they_changed(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            routes = await open_routes()
            told: list[tuple[str, bool]] = []
            routes.watch_topics(lambda name: told.append((name, name in routes.topics)))
            for _ in range(2):
                await put_topic(routes, ORDERS)
                await routes.change_topic("orders", lambda old: old)
            for _ in range(2):
                await routes.change_topic("orders", lambda _: None)
            await put_group(routes, KITCHEN)
            # `put_topic` puts the very same the second time, which is no change.
            assert told == [("orders", True), ("orders", False)]
            await routes.close()

        asyncio.run(main())

    def test_a_setting_is_changed_on_what_is_there_and_its_namespace_is_told(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            routes = await open_routes()
            told: list[tuple[str, str | None]] = []
            routes.watch_settings(
                lambda name: told.append((name, routes.settings.get((name, "key"))))
            )
            for _ in range(2):
                await routes.change_setting("space", "key", lambda old: f"{old or ''}+")
            await routes.change_setting("space", "key", lambda old: old)
            await routes.put_setting("space", "key", "++")
            assert told == [("space", "+"), ("space", "++")]
            await routes.change_setting("space", "key", lambda _: None)
            assert told[2:] == [("space", None)]
            await routes.close()

        asyncio.run(main())

    def test_a_broker_is_there_until_it_is_removed(self, open_routes: Opener) -> None:
        async def main() -> None:
            routes = await open_routes()
            await routes.put_broker(BROKER)
            assert routes.brokers == {"broker-0": (BROKER,)}
            for _ in range(2):
                await routes.remove_broker("broker-0", "n")
                assert routes.brokers == {}
            await routes.close()

        asyncio.run(main())


class SeveralNodesContract(RoutesContract):
    """Laws of stores in which a broker may have several nodes, each with a store."""

    def test_what_one_changes_others_see_and_their_watchers_hear_of(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 2) as (first, second):
                heard: list[tuple[str, Topic | None]] = []
                spaces: list[str] = []
                second.watch_settings(spaces.append)
                second.watch_topics(
                    lambda name: heard.append((name, second.topics.get(name)))
                )
                await put_topic(first, ORDERS)
                await until(lambda: heard == [("orders", ORDERS)])
                await put_group(first, KITCHEN)
                await first.put_setting("space", "key", "value")
                await until(lambda: second.settings == {("space", "key"): "value"})
                assert spaces == ["space"]
                await until(lambda: second.groups == {"kitchen": KITCHEN})
                await first.change_topic("orders", lambda _: None)
                await until(lambda: heard == [("orders", ORDERS), ("orders", None)])
                assert second.topics == {}

        asyncio.run(main())

    def test_a_change_gets_what_another_changed_just_now(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 2) as (first, second):
                seen: list[Topic | None] = []

                def look(old: Topic | None) -> Topic | None:
                    seen.append(old)
                    return old

                for _ in range(10):
                    await first.change_topic(
                        "orders", lambda old: None if old else ORDERS
                    )
                    await second.change_topic("orders", look)
                assert seen == [ORDERS, None] * 5

        asyncio.run(main())

    def test_of_changes_at_the_same_time_none_is_lost_and_none_made_twice(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 3) as stores:
                async with asyncio.TaskGroup() as group:
                    for store in (*stores, stores[0]):
                        group.create_task(grow(store, 20))
                last = Topic(name="count", read_queue_nums=80, write_queue_nums=1)
                for store in stores:
                    await until(lambda: store.topics == {"count": last})  # noqa: B023

        asyncio.run(main())

    def test_of_settings_changed_at_the_same_time_none_is_lost(
        self, open_routes: Opener
    ) -> None:
        async def add(routes: RouteStore) -> None:
            for _ in range(10):
                await routes.change_setting("space", "key", lambda old: f"{old or ''}+")

        async def main() -> None:
            async with opened(open_routes, 3) as stores:
                told: list[str | None] = []
                stores[2].watch_settings(
                    lambda _: told.append(stores[2].settings.get(("space", "key")))
                )
                async with asyncio.TaskGroup() as group:
                    for store in stores[:2]:
                        group.create_task(add(store))
                last = "+" * 20
                for store in stores:
                    await until(lambda: store.settings == {("space", "key"): last})  # noqa: B023
                await until(lambda: told[-1:] == [last])

        asyncio.run(main())

    def test_a_topic_made_a_moment_ago_is_found_by_all_who_ask(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 2) as (first, second):
                for number in range(10):
                    topic = Topic(
                        name=f"t{number}", read_queue_nums=1, write_queue_nums=1
                    )
                    await put_topic(first, topic)
                    asked = (second.find_topic(topic.name) for _ in range(3))
                    assert await asyncio.gather(*asked) == [topic] * 3
                assert await second.find_topic("none") is None

        asyncio.run(main())

    def test_nodes_take_over_in_the_order_in_which_they_came(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 3) as stores:
                a, b, c = (node(name) for name in "abc")
                for store, one in zip(stores, (a, b, c), strict=True):
                    await store.put_broker(one)
                for store in stores:
                    await until(lambda: store.brokers == {"broker-0": (a, b, c)})  # noqa: B023
                told: list[str] = []
                stores[2].watch_brokers(told.append)
                await stores[0].remove_broker("broker-0", "a")
                assert stores[0].brokers == {"broker-0": (b, c)}
                await until(lambda: stores[2].brokers == {"broker-0": (b, c)})
                assert told == ["broker-0"]
                await stores[0].put_broker(a)
                for store in stores:
                    await until(lambda: store.brokers == {"broker-0": (b, c, a)})  # noqa: B023

        asyncio.run(main())

    def test_a_node_that_is_announced_again_replaces_itself_and_is_the_last(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 3) as stores:
                a, b = node("a"), node("b")
                await stores[0].put_broker(a)
                await stores[1].put_broker(b)
                restarted = replace(a, pid=2)
                await stores[2].put_broker(restarted)
                for store in stores:
                    await until(lambda: store.brokers == {"broker-0": (b, restarted)})  # noqa: B023

        asyncio.run(main())

    def test_brokers_do_not_mix_and_go_with_the_store_that_announced_them(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            async with opened(open_routes, 2) as (first, second):
                other = node("a", "broker-1")
                await first.put_broker(BROKER)
                await first.put_broker(other)
                both = {"broker-0": (BROKER,), "broker-1": (other,)}
                await until(lambda: second.brokers == both)
                await first.close()
                await until(lambda: second.brokers == {})

        asyncio.run(main())

    def test_a_place_is_held_while_the_store_is_open(self, open_routes: Opener) -> None:
        async def main() -> None:
            routes = await open_routes()
            await routes.put_broker(BROKER)
            assert routes.held_until_s > time.monotonic()
            await routes.close()
            assert routes.held_until_s == -math.inf

        asyncio.run(main())
