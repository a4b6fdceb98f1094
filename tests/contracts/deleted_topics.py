"""What route stores do with deleted topics; a part of the contract of all stores."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ropeway.routing.api import Deletion, Topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.routing.api import RouteStore

    Opener = Callable[[], Awaitable[RouteStore]]

ORDERS = Topic(
    name="orders",
    read_queue_nums=2,
    write_queue_nums=1,
    route={"broker-0": [1023, 0]},
)


class DeletedTopicsContract:
    """Laws of `routing.api.RouteStore.deleted`."""

    def test_deleted_topics_are_apart_and_can_be_made_again(
        self, open_routes: Opener
    ) -> None:
        async def main() -> None:
            left = Deletion(generation=0, partitions=[0, 1023], pending=["broker-0"])
            deleted = replace(ORDERS, route={}, generation=1, deletions=[left])
            again = replace(
                ORDERS, generation=1, generations={"broker-0": 1}, deletions=[left]
            )
            routes = await open_routes()
            told: list[str] = []
            routes.watch_topics(told.append)
            given: list[Topic | None] = []
            for topic in (ORDERS, deleted, again, deleted):
                await routes.change_topic(
                    "orders",
                    lambda old, new=topic: given.append(old) or new,  # type: ignore[func-returns-value, misc]
                )
                live, gone = routes.topics, routes.deleted
                assert (topic in live.values()) != (topic in gone.values())
                assert len(live) + len(gone) == 1
                assert await routes.find_topic("orders") == live.get("orders")
            assert given == [None, ORDERS, deleted, again]
            assert told == ["orders"] * 4
            await routes.close()
            routes = await open_routes()
            assert (routes.topics, routes.deleted) == ({}, {"orders": deleted})
            await routes.change_topic("orders", lambda _: None)
            assert (routes.topics, routes.deleted) == ({}, {})
            await routes.close()

        asyncio.run(main())
