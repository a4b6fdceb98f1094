"""The topology: a job's nodes in order, to be looked at before anything runs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ropeway.streams.nodes import ENDS, QUERIES, SHUFFLES, Operator, TopologyError
from ropeway.streams.spark_plan import onto
from ropeway.streams.windows import Firing

if TYPE_CHECKING:
    from ropeway.streams.nodes import Node


class Topology:
    """A job that can be described, drawn, and run.

    Args:
        job_id: The job's name.
        nodes: All that were added, in order.

    Raises:
        TopologyError: Nothing comes out of it.
    """

    def __init__(self, job_id: str, nodes: tuple[Node, ...]) -> None:
        self.job_id = job_id
        ends = tuple(one for one in nodes if one.operator in ENDS)
        if not ends:
            raise TopologyError(
                f"job {job_id!r} ends nowhere; allowed: sink, foreach or print"
            )
        self.nodes = _before(ends, nodes)
        """What is needed for what comes out of it, parents first."""
        self.queries = tuple(one for one in self.nodes if one.operator in QUERIES)
        """Those that become a query each."""

    def describe(self) -> str:
        """A line for each node: its name, where records come from, what it becomes."""
        lines = []
        for node in self.nodes:
            parents = " + ".join(parent.name for parent in node.parents)
            told = _told(node.arguments)
            lines.append(
                f"{node.name}{f' {told}' if told else ''}"
                f"{f' <- {parents}' if parents else ''} | {onto(node)}"
            )
        return "\n".join(lines)

    def draw(self) -> str:
        """A drawing in Mermaid's words, which many editors show."""
        lines = ["flowchart LR"]
        numbers = {node: f"n{at}" for at, node in enumerate(self.nodes)}
        for node in self.nodes:
            left, right = ("[(", ")]") if node.operator in SHUFFLES else ("[", "]")
            lines.append(f'    {numbers[node]}{left}"{node.name}"{right}')
        for node in self.nodes:
            lines += (
                f"    {numbers[parent]} {_arrow(node)} {numbers[node]}"
                for parent in node.parents
            )
        return "\n".join(lines)

    def part(self, query: Node) -> tuple[Node, ...]:
        """The nodes of one query: from its end back to the topics that it reads."""
        return _before((query,), self.nodes, until=Operator.THROUGH)

    def sources(self, query: Node) -> tuple[Node, ...]:
        """Those of them that read a topic."""
        return tuple(
            node
            for node in self.part(query)
            if node.operator is Operator.SOURCE
            or (node.operator is Operator.THROUGH and node is not query)
        )

    @property
    def fingerprint(self) -> str:
        """The same for topologies that can go on from each other's checkpoints."""
        return hashlib.sha256(self.describe().encode()).hexdigest()


def _arrow(node: Node) -> str:
    return "==>" if node.operator in SHUFFLES else "-->"


def _told(arguments: Any) -> str:
    shown = (
        f"{name}={value}"
        for name, value in arguments.items()
        if value is not False
        and value != Firing()
        and isinstance(value, (str, int, Struct))
    )
    return ", ".join(shown)


def _before(
    ends: tuple[Node, ...], nodes: tuple[Node, ...], until: Operator | None = None
) -> tuple[Node, ...]:
    needed: set[Node] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            if node in ends or node.operator is not until:
                waiting += node.parents
    return tuple(node for node in nodes if node in needed)
