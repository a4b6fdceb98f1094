"""Which partitions the queues of a topic get, on one broker or on all of them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ropeway.gateway.node import names
from ropeway.gateway.wire import host_port
from ropeway.routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE
from ropeway.storage.api import MAX_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ropeway.routing.api import Broker, RouteStore, Topic


def complaint(setup: Topic) -> str | None:
    """What is wrong with a topic's numbers of queues and permission, if anything."""
    for what, number in (
        ("readQueueNums", setup.read_queue_nums),
        ("writeQueueNums", setup.write_queue_nums),
    ):
        if not 0 <= number <= MAX_PARTITIONS:
            return (
                f"{what} of topic {setup.name} is {number}; "
                f"allowed: 0 to {MAX_PARTITIONS}"
            )
    if not queues(setup):
        return f"topic {setup.name} has no queue; allowed: at least 1"
    if not 0 <= setup.perm <= (PERM_READ | PERM_WRITE | PERM_INHERIT):
        return f"perm of topic {setup.name} is {setup.perm}; allowed: 0 to 7"
    return None


def queues(setup: Topic) -> int:
    """How many queues of a topic a broker needs."""
    return max(setup.read_queue_nums, setup.write_queue_nums)


def with_counts_of(setup: Topic, old: Topic | None, broker: str) -> Topic:
    """A topic's set-up with its numbers of queues, where a broker names its own.

    Numbers are a topic's, and brokers have fewer queues after some were moved, or where
    they were made with fewer. Who changes something else there, or makes the topic on
    one broker more, must not have the others' queues vanish.
    """
    if old is None or not old.route:
        return setup
    if broker not in old.route:
        return replace(
            setup,
            read_queue_nums=max(old.read_queue_nums, setup.read_queue_nums),
            write_queue_nums=max(old.write_queue_nums, setup.write_queue_nums),
        )
    count = len(old.route[broker])
    named = (setup.read_queue_nums, setup.write_queue_nums)
    if named != (min(old.read_queue_nums, count), min(old.write_queue_nums, count)):
        return setup
    return replace(
        setup,
        read_queue_nums=old.read_queue_nums,
        write_queue_nums=old.write_queue_nums,
    )


def used(route: Mapping[str, list[int]]) -> set[int]:
    """Every partition that is some broker's."""
    return {number for numbers in route.values() for number in numbers}


def free(taken: Collection[int], start: int, count: int) -> list[int]:
    """The next partitions that nobody has; numbers begin again after the last."""
    numbers = (
        number % MAX_PARTITIONS for number in range(start, start + MAX_PARTITIONS)
    )
    return list(islice((one for one in numbers if one not in taken), count))


def is_drained(routes: RouteStore, broker: str) -> bool:
    """Whether a broker is to get no queues, because it is to leave its cluster."""
    return (names.DRAINS, broker) in routes.settings


def neighbours(
    brokers: Mapping[str, Sequence[Broker]], ours: str, cluster: str, most: int
) -> dict[str, set[str]]:
    """The brokers of a cluster that run, each with the machine of its master.

    Args:
        brokers: The nodes of every broker, the master first.
        ours: A broker that is always among them.
        cluster: Which one.
        most: Of so many brokers at most; at least 1.
    """
    found: dict[str, set[str]] = {ours: set()}
    for name, nodes in sorted(brokers.items()):
        master = nodes[0]
        if name == ours or (master.cluster == cluster and len(found) < most):
            found[name] = {host_port.split(one)[0] for one in master.addresses}
    return found


def share_out(
    numbers: Sequence[int],
    brokers: Mapping[str, Collection[str]],
    owners: Mapping[int, str],
) -> dict[str, list[int]]:
    """Give partitions to brokers: near ones where there is room, and to all as many.

    Args:
        numbers: The partitions.
        brokers: At least one; each with the machines that it is on.
        owners: The machine that serves a partition, of those for which it is known.

    Returns:
        The partitions of each broker, in their order. Numbers of two brokers differ by
        one at most.
    """
    given: dict[str, list[int]] = {name: [] for name in brokers}
    least, larger = divmod(len(numbers), len(brokers))
    far: list[int] = []
    for number in numbers:
        near = [
            name
            for name, hosts in brokers.items()
            if owners.get(number) in hosts and len(given[name]) < least + (larger > 0)
        ]
        if not near:
            far.append(number)
            continue
        name = min(near, key=lambda one: len(given[one]))
        given[name].append(number)
        larger -= len(given[name]) > least
    for number in far:
        min(given.values(), key=len).append(number)
    return {name: sorted(partitions) for name, partitions in given.items()}
