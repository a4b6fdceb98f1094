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
from typing import TYPE_CHECKING

from gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from acl.api import Principal, Source
    from gateway.bounds import CreationsConfig

_HOUR_S = 3600
MOST_MAKERS = 10_000
"""Users and addresses that are remembered; of more, who came first begins anew."""
TOPIC, GROUP = "topics", "groups"


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


class Creations:
    """Counts the topics and groups that users and addresses make.

    Args:
        config: How many.
        clock_s: Seconds that only go up.
    """

    def __init__(self, config: CreationsConfig, clock_s: Callable[[], float]) -> None:
        self._most = {TOPIC: config.topics, GROUP: config.groups}
        self._per_hour = {TOPIC: config.topics_per_hour, GROUP: config.groups_per_hour}
        self._clock_s = clock_s
        self._left: dict[tuple[str, str], tuple[float, float]] = {}
        """How many each may make yet, and when that was."""

    def take(self, kind: str, maker: str, there: int) -> None:
        """Somebody is about to make one.

        Args:
            kind: `TOPIC` or `GROUP`.
            maker: Who.
            there: How many there are, of everybody.

        Raises:
            TooManyError: It may not.
        """
        if there >= self._most[kind]:
            raise TooManyError(
                f"there are {there} {kind}; allowed: {self._most[kind]} "
                f"(creations.{kind}), more by superusers alone"
            )
        per_hour = self._per_hour[kind]
        left = self._left_of(kind, maker)
        if left < 1:
            raise TooManyError(
                f"{maker:.128} has made {per_hour} {kind} within an hour; allowed: "
                f"{per_hour} (creations.{kind}_per_hour), more by superusers alone"
            )
        self._put(kind, maker, left - 1)

    def give_back(self, kind: str, maker: str) -> None:
        """It was not made after all."""
        self._put(kind, maker, self._left_of(kind, maker) + 1)

    def _left_of(self, kind: str, maker: str) -> float:
        per_hour = self._per_hour[kind]
        now_s = self._clock_s()
        left, at_s = self._left.get((kind, maker), (per_hour, now_s))
        return min(per_hour, left + (now_s - at_s) * per_hour / _HOUR_S)

    def _put(self, kind: str, maker: str, left: float) -> None:
        key = kind, maker
        if key not in self._left and len(self._left) >= MOST_MAKERS:
            del self._left[next(iter(self._left))]
        self._left[key] = left, self._clock_s()


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
