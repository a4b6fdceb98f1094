"""Floors of trimmed partitions, where the log leaves it to the routes to keep them.

All brokers and their nodes know the routes, so a floor goes with its queue, whichever
broker has it. It is of the generation that has the partition, and goes with that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ropeway.routing.api import RouteError
from ropeway.storage.trim_api import floors_outside, trimmable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ropeway.routing.api import RouteStore, Topic
    from ropeway.storage.api import Log


def tell(log: Log, setup: Topic) -> None:
    """Have a log that keeps no floors know those of a topic."""
    if (outside := floors_outside(log)) is not None:
        outside.keep_floors(setup.name, setup.floors)


def kept(setup: Topic, deleted: Collection[int]) -> dict[int, int]:
    """The floors of a topic after partitions of it were deleted."""
    return {n: floor for n, floor in setup.floors.items() if n not in deleted}


def raised(
    old: Topic | None, setup: Topic, broker: str, floors: Mapping[int, int]
) -> Topic:
    """A topic after a broker has trimmed partitions.

    Args:
        old: What the routes have of it.
        setup: What it was when the floors were found.
        broker: Whose queues the partitions are.
        floors: By partition.

    Raises:
        RouteError: Queues were deleted or have moved since.
    """
    if (
        old is None
        or old.generations.get(broker, 0) != setup.generations.get(broker, 0)
        or not floors.keys() <= set(old.route.get(broker, ()))
    ):
        raise RouteError(
            f"queues of topic {setup.name} were deleted or have moved meanwhile; "
            "nothing was trimmed, trim it again"
        )
    higher = {n: at for n, at in floors.items() if at > old.floors.get(n, 0)}
    return replace(old, floors={**old.floors, **higher})


async def trim(
    log: Log,
    routes: RouteStore,
    setup: Topic,
    broker: str,
    floors: Mapping[int, int],
    *,
    dry_run: bool,
) -> dict[int, int]:
    """Trim partitions of a broker, and have it kept; for all but routes as the log.

    Args:
        log: Has them.
        routes: Keep floors where the log does not.
        setup: The topic.
        broker: Whose queues they are.
        floors: See `storage.trim_api.Trimmable.trim`.
        dry_run: Likewise.

    Raises:
        LogError: See `storage.trim_api`.
        RouteError: The floors are not kept, or nobody knows.
    """
    trimmed = trimmable(log)
    if not dry_run and floors_outside(log) is not None:
        # First: what was read no more once is never read again.
        floors = await trimmed.trim(setup.name, floors, dry_run=True)
        change = partial(raised, setup=setup, broker=broker, floors=floors)
        await routes.change_topic(setup.name, change)
    return await trimmed.trim(setup.name, floors, dry_run=dry_run)
