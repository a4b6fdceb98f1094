"""What Pulsar has of deleted topics, and lacks of those that are: found, and mended.

Only what is proven to be deleted is deleted: a name with a generation is the owning
cluster's alone, and one below the topic's own, of which no broker has queues, is not
used again: that is decided by the same compare-and-set as a route. A topic of the first
generation has a plain name, which native clients may have given as well: it is told of
and stays. So does what routes know nothing of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.pulsar.topic_names import PulsarName, parse_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.topic_names import Names


class Routed(Struct, frozen=True):
    """What routes say of a topic, also of a deleted one that they still know."""

    name: str
    live: dict[int, frozenset[int]]
    """The partitions that brokers have queues in, of each generation that is used."""
    generation: int
    """Lower ones that are not live were deleted."""


class Missing(Struct, frozen=True):
    """A generation of a topic that lacks partitions which queues are in."""

    topic: str
    name: PulsarName
    partitions: tuple[int, ...]


class Left(Struct, frozen=True):
    """A deleted generation of a topic that Pulsar still has."""

    topic: str
    name: PulsarName

    @property
    def is_ours(self) -> bool:
        """Whether nobody else can have made it."""
        return self.name.generation > 0


def find(
    expected: Sequence[Routed], names: Names, space: str, full_names: list[str]
) -> Iterator[Missing | Left]:
    """Compare a namespace with the routes.

    Args:
        expected: What routes say of all topics, read before Pulsar was asked.
        names: The log's.
        space: `tenant/namespace`, of which nobody else is the owner.
        full_names: The topics that Pulsar has there, listed after routes were read.
    """
    there: dict[PulsarName, set[int]] = {}
    for parsed in map(parse_partition, full_names):
        if parsed is not None:
            there.setdefault(parsed[0], set()).add(parsed[1])
    known = {}
    for routed in expected:
        if not names.is_in(space, routed.name):
            continue
        known[names.canonical(routed.name)] = routed
        for generation, partitions in sorted(routed.live.items()):
            name = names.pulsar(routed.name, generation)
            lost = partitions - there.get(name, set())
            if lost:
                yield Missing(routed.name, name, tuple(sorted(lost)))
    for name in sorted(there):
        topic = names.rocketmq(name)
        found = known.get(topic)
        if (
            found is not None
            and name.generation < found.generation
            and name.generation not in found.live
        ):
            yield Left(topic, name)


async def mend(admin: Admin, one: Missing | Left) -> None:
    """Make partitions that are missing, empty, or delete what was left of a deletion.

    Raises:
        ValueError: It may be somebody else's.
        LogUnavailableError: Pulsar refuses, or does not answer.
    """
    if isinstance(one, Missing):
        await admin.create(one.name, max(one.partitions) + 1)
        await admin.create_missing(one.name)
    elif one.is_ours:
        await admin.delete(one.name)
    else:
        raise ValueError(f"{one.name} is not provably of a deleted topic")
