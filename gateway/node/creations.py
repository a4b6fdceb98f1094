"""Bounds on what clients make: topics, groups, and registrations of connections.

Whoever makes them is a user, or an address where nobody has a name. Superusers may make
any number of topics and groups: they are who can clean up.

Topics and groups stay, so how fast they come is bounded, as Kafka bounds mutations of
topics by user (KIP-599), and how many there are. The first is counted by each node in
memory; the second is there with the routes, and holds for all nodes and over restarts.
Registrations go with their connections, so how many there are at a time is bounded.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ropeway.gateway.node.accounts import Bucket
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.request_limits import CreationsConfig

_HOUR_S = 3600
MOST_MAKERS = 10_000
"""Users and addresses that are remembered; of more, who came first begins anew."""
TOPIC, GROUP = "topics", "groups"
_QUEUES = 16
"""A topic of more counts as several; clients have them made with 4 to 16."""


class TooManyError(Exception):
    """A client makes more than it may; the text says what, and what is allowed."""


class TooLongError(Exception):
    """A client's name is longer than it may be; the text says what is allowed."""


def maker_of(principal: Principal | None, source: Source) -> str:
    """Who makes things: the user, or the network where nobody has a name."""
    return host_port.network(source.address) if principal is None else str(principal)


def check_name(what: str, name: str, characters: int) -> None:
    """Let a name be kept as long as its client is connected.

    Raises:
        TooLongError: It is too long.
    """
    if len(name) > characters:
        raise TooLongError(
            f"{what} of {len(name)} characters; allowed: {characters} "
            "(creations.client_id_characters)"
        )


def weight(queues: int) -> int:
    """As how many topics one of so many queues counts: each queue takes memory."""
    return max(-(-queues // _QUEUES), 1)


class Creations:
    """Counts the topics and groups that users and addresses make.

    Args:
        config: How many.
        clock_s: Seconds that only go up.
    """

    def __init__(self, config: CreationsConfig, clock_s: Callable[[], float]) -> None:
        self._most = {TOPIC: config.topics, GROUP: config.groups}
        self._per_hour = {TOPIC: config.topics_per_hour, GROUP: config.groups_per_hour}
        self._at_once = config.at_once
        self._clock_s = clock_s
        self._under_way: Counter[tuple[str, str]] = Counter()
        """How many are being created, by kind and maker."""
        self._buckets: dict[tuple[str, str], Bucket] = {}
        """How many each may make yet, by kind and maker."""

    @contextmanager
    def under_way(self, kind: str, maker: str) -> Iterator[None]:
        """Count one that is being created within the block.

        Args:
            kind: `TOPIC` or `GROUP`.
            maker: Who has it created.

        Raises:
            TooManyError: There are too many; raised on entry.
        """
        if self._under_way[kind, maker] >= self._at_once:
            raise TooManyError(
                f"{self._at_once} {kind} are being created for {maker:.128}; allowed: "
                f"{self._at_once} at a time (creations.at_once); try again"
            )
        self._under_way[kind, maker] += 1
        try:
            yield
        finally:
            self._under_way[kind, maker] -= 1
            if not self._under_way[kind, maker]:
                del self._under_way[kind, maker]

    def take(self, kind: str, maker: str, there: int, count: int = 1) -> None:
        """Somebody is about to make one.

        Args:
            kind: `TOPIC` or `GROUP`.
            maker: Who.
            there: How many there are, of everybody.
            count: As how many it counts.

        Raises:
            TooManyError: It may not.
        """
        if there >= self._most[kind]:
            raise TooManyError(
                f"there are {there} {kind}; allowed: {self._most[kind]} "
                f"(creations.{kind}), more by superusers alone"
            )
        per_hour = self._per_hour[kind]
        if not self._bucket(kind, maker).try_take(self._clock_s(), count):
            many = f", and this one counts as {count}" if count > 1 else ""
            raise TooManyError(
                f"{maker:.128} has made {per_hour} {kind} within an hour{many}; "
                f"allowed: {per_hour} (creations.{kind}_per_hour), more by superusers "
                "alone"
            )

    def give_back(self, kind: str, maker: str, count: int = 1) -> None:
        """It was not made after all."""
        self._bucket(kind, maker).take(-count, self._clock_s())

    def _bucket(self, kind: str, maker: str) -> Bucket:
        bucket = self._buckets.get((kind, maker))
        if bucket is None:
            if len(self._buckets) >= MOST_MAKERS:
                del self._buckets[next(iter(self._buckets))]
            most = self._per_hour[kind]
            bucket = Bucket(most / _HOUR_S, self._clock_s(), burst=most)
            self._buckets[kind, maker] = bucket
        return bucket


class Registrations:
    """Counts the producers and consumers that connections have registered.

    Args:
        most: Of one user or address; a client has one for each of its groups.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()
        self._makers: dict[object, tuple[str, int]] = {}
        """Whose each connection is, since it first registered, and how many it has."""

    def __len__(self) -> int:
        return len(self._makers)

    def add(self, link: object, maker: str) -> None:
        """A connection registers one more.

        Raises:
            TooManyError: It may not.
        """
        maker, count = self._makers.get(link, (maker, 0))
        if self._counts[maker] >= self._most:
            raise TooManyError(
                f"connections of {maker:.128} have registered {self._most} producers "
                f"and consumers; allowed: {self._most} (creations.registrations)"
            )
        self._counts[maker] += 1
        self._makers[link] = maker, count + 1

    def remove(self, link: object, count: int = 1) -> None:
        """A connection has so many less."""
        maker, had = self._makers.pop(link)
        if had > count:
            self._makers[link] = maker, had - count
        self._counts[maker] -= count
        if not self._counts[maker]:
            del self._counts[maker]
