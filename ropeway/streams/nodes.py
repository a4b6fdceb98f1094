"""Logical nodes: what a user wrote, one an operator, linked to those before it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any


class TopologyError(ValueError):
    """A stream cannot be built so; names the step, what came, and what is allowed."""


class Operator(Enum):
    """What a node does; the words of RIP-58."""

    SOURCE = "source"
    SELECT_TIMESTAMP = "select_timestamp"
    MAP = "map"
    FLAT_MAP = "flat_map"
    FILTER = "filter"
    KEY_BY = "key_by"
    THROUGH = "through"
    AGGREGATE = "aggregate"
    WINDOW_AGGREGATE = "window_aggregate"
    JOIN = "join"
    WINDOW_JOIN = "window_join"
    SINK = "sink"
    FOREACH = "foreach"
    PRINT = "print"


ENDS = frozenset({Operator.SINK, Operator.FOREACH, Operator.PRINT})
"""Those that nothing comes behind."""

QUERIES = ENDS | {Operator.THROUGH}
"""Those that become a query of Spark's each."""

SHUFFLES = frozenset(
    {
        Operator.THROUGH,
        Operator.AGGREGATE,
        Operator.WINDOW_AGGREGATE,
        Operator.JOIN,
        Operator.WINDOW_JOIN,
    }
)
"""Those that bring all records of a key to one place."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of one stream."""

    name: str
    operator: Operator
    parents: tuple[Node, ...]
    arguments: dict[str, Any]
    """What the operator was given; see `ropeway.streams.spark_plan`."""


class Graph:
    """The nodes of one job, as they are added.

    Args:
        job_id: The job's name, of which names of nodes are made.
    """

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.nodes: list[Node] = []
        self._numbers: Counter[str] = Counter()

    def add(
        self,
        operator: Operator,
        parents: tuple[Node, ...] = (),
        *,
        name: str | None = None,
        kind: str | None = None,
        **arguments: Any,
    ) -> Node:
        """Add a node.

        Args:
            operator: What it does.
            parents: Where its records come from.
            name: What to call it; by default job, kind and number.
            kind: What names call it, where it is not the operator's word.
            arguments: What it was given.

        Raises:
            TopologyError: The name is taken.
        """
        word = (kind or operator.value).upper().replace("_", "-")
        self._numbers[word] += 1
        called = name or f"{self.job_id}-ROPEWAY-{word}-{self._numbers[word]}"
        if any(one.name == called for one in self.nodes):
            raise TopologyError(
                f"step {called!r} is there twice; allowed: each name once"
            )
        for parent in parents:
            if parent.operator is Operator.THROUGH and not parent.arguments["topic"]:
                # The name that RIP-58 gives it.
                parent.arguments["topic"] = f"{called}-shuffleTopic"
        node = Node(called, operator, parents, arguments)
        self.nodes.append(node)
        return node
