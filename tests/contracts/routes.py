"""What every route store must do; a fixture makes it a backend's test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from routing.api import Broker, Group, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from routing.api import RouteStore

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


async def put_topic(routes: RouteStore, topic: Topic) -> None:
    """Create or replace a topic."""
    await routes.change_topic(topic.name, lambda _: topic)


async def put_group(routes: RouteStore, group: Group) -> None:
    """Create or replace a group."""
    await routes.change_group(group.name, lambda _: group)


class RoutesContract:
    """Laws of `routing.api.RouteStore`. `open_routes` opens the same one again."""

    @pytest.fixture
    def open_routes(self) -> Callable[[], RouteStore]:
        """A function that opens the store; what was put before is there."""
        raise NotImplementedError

    def test_a_new_store_is_empty(self, open_routes: Callable[[], RouteStore]) -> None:
        async def main() -> None:
            routes = open_routes()
            assert (routes.topics, routes.groups, routes.settings) == ({}, {}, {})
            assert routes.brokers == {}
            await routes.close()

        asyncio.run(main())

    def test_what_was_put_is_seen_at_once_and_outlives_a_close(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            await put_topic(routes, ORDERS)
            await put_group(routes, KITCHEN)
            await routes.put_setting("space", "key", "value")
            for store in (routes, open_routes()):
                assert store.topics == {"orders": ORDERS}
                assert store.groups == {"kitchen": KITCHEN}
                assert store.settings == {("space", "key"): "value"}
                await store.close()
                await store.close()

        asyncio.run(main())

    def test_a_change_gets_what_is_there_and_replaces_it(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
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
            for store in (routes, open_routes()):
                assert store.topics == {"orders": wider}
                assert store.groups == {"kitchen": Group(name="kitchen")}
                assert store.settings == {("space", "key"): "new"}
                await store.close()

        asyncio.run(main())

    def test_a_change_that_raises_changes_nothing(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            told: list[str] = []
            routes.watch_topics(told.append)

            def refuse(_: object) -> None:
                raise ValueError("no")

            for change in (
                routes.change_topic("orders", refuse),
                routes.change_group("kitchen", refuse),
            ):
                with pytest.raises(ValueError, match="no"):
                    await change
            assert (routes.topics, routes.groups, told) == ({}, {}, [])
            await put_topic(routes, ORDERS)
            assert routes.topics == {"orders": ORDERS}
            await routes.close()

        asyncio.run(main())

    def test_what_was_deleted_is_gone_and_deleting_nothing_is_fine(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            await put_topic(routes, ORDERS)
            await put_group(routes, KITCHEN)
            await routes.put_setting("space", "key", "value")
            for _ in range(2):
                await routes.change_topic("orders", lambda _: None)
                await routes.change_group("kitchen", lambda _: None)
                await routes.put_setting("space", "key", None)
            for store in (routes, open_routes()):
                assert (store.topics, store.groups, store.settings) == ({}, {}, {})
                await store.close()

        asyncio.run(main())

    def test_watchers_are_told_of_topics_after_they_changed(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
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

    def test_a_broker_is_there_until_it_is_removed(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            await routes.put_broker(BROKER)
            assert routes.brokers == {"broker-0": (BROKER,)}
            for _ in range(2):
                await routes.remove_broker("broker-0", "n")
                assert routes.brokers == {}
            await routes.close()

        asyncio.run(main())
