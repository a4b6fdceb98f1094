"""Requests to Pulsar that are made from a seed, for the model and for a real one."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENTS = 3
TOPICS = 2
STEPS = 150
NAMES = ("a", "b")


class Step(NamedTuple):
    """What one client does."""

    kind: str
    who: int
    topic: int
    number: int
    """Of the producer or the consumer."""
    given: tuple[Any, ...] = ()


KINDS = (
    *(["open"] * 7 + ["send"] * 16 + ["again"] * 3 + ["close"] * 2),
    *(["subscribe"] * 5 + ["flow"] * 6 + ["last"] * 3 + ["leave"] * 2),
    *(["time"] * 2 + ["place"] * 2 + ["drop"] * 2 + ["unload", "unload"]),
    *("lookup", "unknown", "make", "same", "compact"),
    *("stats", "stats", "index"),
)
OF_PRODUCERS = ("send", "again", "close", "same")
OF_CONSUMERS = ("flow", "last", "leave", "time", "place")
COMPACTED = 0.2
GONE = 0.1
"""How often something is asked of a producer or consumer that is not there any more."""


class Steps:
    """What clients do: made from a seed and from what there is by then."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"{seed}/pulsar")
        self._numbers = itertools.count(1)
        self._sequence = itertools.count(1)
        self.producers: dict[int, tuple[int, int]] = {}
        """Client and topic of each that is open."""
        self.consumers: dict[int, tuple[int, int]] = {}
        self._gone: dict[bool, dict[int, tuple[int, int]]] = {True: {}, False: {}}
        """All that were ever asked for: producers, and consumers."""

    def __iter__(self) -> Iterator[Step]:
        left = STEPS
        while left:
            step = self._step(self._chance.choice(KINDS))
            if step is not None:
                left -= 1
                yield step
                if step.kind in ("time", "place"):
                    # The subscription is where it was moved, whatever this says.
                    again = ("earliest", 0, False)
                    yield step._replace(kind="subscribe", given=again)

    def _step(self, kind: str) -> Step | None:
        draw = self._chance
        who, topic = draw.randrange(CLIENTS), draw.randrange(TOPICS)
        number = 0
        if kind in (*OF_PRODUCERS, *OF_CONSUMERS):
            of_producers = kind in OF_PRODUCERS
            there = self.producers if of_producers else self.consumers
            if draw.random() < GONE or kind == "same":
                there = self._gone[of_producers]
            if not there:
                return None
            number = draw.choice([*there])
            who, topic = there[number]
        return Step(kind, who, topic, *self._given(kind, who, topic, number))

    def _given(
        self, kind: str, who: int, topic: int, number: int
    ) -> tuple[int, tuple[Any, ...]]:
        draw = self._chance
        if kind in ("open", "subscribe"):
            number = next(self._numbers)
            self._gone[kind == "open"][number] = who, topic
        make: dict[str, Callable[[], tuple[Any, ...]]] = {
            "open": lambda: (
                draw.choice(NAMES),
                draw.choice([0, 1, 3, 3, 3, 3]),
                draw.choice([None, None, None, 0, -1]),
            ),
            "send": lambda: tuple(
                (next(self._sequence), draw.randint(1, 3), draw.choice("xyz"))
                for _ in range(draw.choice([1, 1, 2, 4]))
            ),
            "again": lambda: (
                (max(1, next(self._sequence) - draw.randint(1, 40)), 1, "x"),
            ),
            "subscribe": lambda: (
                draw.choice(["earliest", "latest", "place", "place"]),
                draw.randrange(64),
                draw.random() < COMPACTED,
            ),
            "flow": lambda: (draw.choice([1, 3, 10, 100]),),
            "time": lambda: (draw.randrange(64),),
            "place": lambda: (draw.randrange(64),),
            "index": lambda: (draw.randrange(8),),
        }
        return number, make.get(kind, tuple)()
