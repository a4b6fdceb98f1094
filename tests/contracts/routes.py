"""What every route store must do; a fixture makes it a backend's test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from routing.api import Group, Topic

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
            await routes.close()

        asyncio.run(main())

    def test_what_was_put_is_seen_at_once_and_outlives_a_close(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            await routes.put_topic(ORDERS)
            await routes.put_group(KITCHEN)
            await routes.put_setting("space", "key", "value")
            for store in (routes, open_routes()):
                assert store.topics == {"orders": ORDERS}
                assert store.groups == {"kitchen": KITCHEN}
                assert store.settings == {("space", "key"): "value"}
                await store.close()
                await store.close()

        asyncio.run(main())

    def test_a_second_put_replaces_the_first(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            wider = Topic(name="orders", read_queue_nums=9, write_queue_nums=9)
            for topic in (ORDERS, wider):
                await routes.put_topic(topic)
            for group in (KITCHEN, Group(name="kitchen")):
                await routes.put_group(group)
            for value in ("old", "new"):
                await routes.put_setting("space", "key", value)
            for store in (routes, open_routes()):
                assert store.topics == {"orders": wider}
                assert store.groups == {"kitchen": Group(name="kitchen")}
                assert store.settings == {("space", "key"): "new"}
                await store.close()

        asyncio.run(main())

    def test_what_was_deleted_is_gone_and_deleting_nothing_is_fine(
        self, open_routes: Callable[[], RouteStore]
    ) -> None:
        async def main() -> None:
            routes = open_routes()
            await routes.put_topic(ORDERS)
            await routes.put_group(KITCHEN)
            await routes.put_setting("space", "key", "value")
            for _ in range(2):
                await routes.delete_topic("orders")
                await routes.delete_group("kitchen")
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
            await routes.put_topic(ORDERS)
            await routes.put_topic(ORDERS)
            await routes.delete_topic("orders")
            await routes.put_group(KITCHEN)
            assert told == [("orders", True), ("orders", True), ("orders", False)]
            await routes.close()

        asyncio.run(main())
