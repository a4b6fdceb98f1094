"""The mirror of a job: its state and offsets in compacted topics, for all to read.

They are JSON, and only what JSON gives back as it was: a job restores itself from them,
and nobody who can send to a topic may make it run what he likes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ropeway.spark.options import EXACTLY_ONCE
from ropeway.streams.carried import row_key, told
from ropeway.streams.nodes import ENDS, Node, Operator, TopologyError
from ropeway.streams.records import StepError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.spark.options import Options

STATEFUL = frozenset({Operator.AGGREGATE, Operator.WINDOW_AGGREGATE, Operator.JOIN})
"""Those whose state is mirrored."""


def state_topic(node: Node) -> str:
    """Where a step's state goes: as in RIP-58, its shuffle's name and `-stateTopic`."""
    parent = node.parents[0]
    if parent.operator is Operator.THROUGH:
        return f"{parent.arguments['topic']}-stateTopic"
    return f"{node.name}-shuffleTopic-stateTopic"


def offset_topic(job_id: str) -> str:
    """Where the offsets of a job's queries go."""
    return f"{job_id}-ROPEWAY-offsetTopic"


class Queries(Protocol):
    """A job's queries, as far as a mirror needs them; see `topology.Topology`."""

    @property
    def queries(self) -> Sequence[Node]:
        """What ends each of them."""

    def part(self, query: Node) -> Sequence[Node]:
        """The nodes of one query."""


def mirrored(topology: Queries) -> dict[Node, Node]:
    """The steps of a job that keep state, with the query of each.

    Raises:
        TopologyError: There is a step that a mirror cannot have.
    """
    found: dict[Node, Node] = {}
    for query in topology.queries:
        if query.operator in ENDS and query.operator is not Operator.SINK:
            raise _refused(query, query.operator.value, "sink, whose batches are whole")
        for node in topology.part(query):
            if node.operator is Operator.WINDOW_JOIN:
                raise _refused(node, "join in windows", "joins without windows")
            if node.operator not in STATEFUL:
                continue
            if node in found:
                raise TopologyError(
                    f"step {node.name!r} leads to {found[node].name!r} and to "
                    f"{query.name!r}, each with a state of its own; allowed with a "
                    "mirror: one of them"
                )
            found[node] = query
    return found


def _refused(node: Node, what: str, allowed: str) -> TopologyError:
    return TopologyError(
        f"step {node.name!r} is a {what}; allowed with a mirror: {allowed}"
    )


def check_options(options: Options) -> None:
    """Refuse a sink that cannot send results and state as one.

    Raises:
        TopologyError: It gives another guarantee.
    """
    if options.guarantee != EXACTLY_ONCE:
        raise TopologyError(
            f"option guarantee is {options.guarantee!r}; allowed with a mirror: "
            f"{EXACTLY_ONCE}"
        )


def _listed(key: Any) -> Any:
    return list(map(_listed, key)) if isinstance(key, tuple) else key


@dataclass(frozen=True)
class StateMirror:
    """Makes messages of a step's state; Spark takes it to its workers."""

    step: str
    topic: str
    offset_topic: str
    query: str
    watermark_ms: int = 0
    """How far it had come where the job was restored."""

    def message(self, key: Any, body: dict[str, Any] | None) -> tuple[bytes, bytes]:
        """Key and value of the row for the state of a key.

        Args:
            key: Of the state.
            body: What is said of it; None when it is forgotten.

        Raises:
            StepError: JSON does not give key or state back as they are.
        """
        name = self._faithful("key", _listed(key))
        if body is None:
            return row_key(self.topic, name), b""
        self._faithful("state", body["state"])
        return row_key(self.topic, name), json.dumps(body, default=repr).encode()

    def watermark(self, watermark_ms: int) -> tuple[bytes, bytes]:
        """The same for how far time has come."""
        key = row_key(self.offset_topic, told(self.query, self.step))
        return key, str(watermark_ms).encode()

    def _faithful(self, what: str, value: Any) -> str:
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            text = "null"
        if json.loads(text) != value:
            raise StepError(
                f"step {self.step!r} has {what} {value!r:.200}; allowed in a mirror: "
                "what JSON gives back as it was (text, numbers, lists, dicts with text "
                "as keys)"
            )
        return text
