"""What all streams can: end somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ropeway.streams.nodes import Graph, Node, Operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.streams.headers import Header

T = TypeVar("T")


class Stream(Generic[T]):
    """What all streams can: end somewhere."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph = graph
        self._node = node

    def _add(
        self, operator: Operator, name: str | None, kind: str | None, **arguments: Any
    ) -> Node:
        return self._graph.add(
            operator, (self._node,), name=name, kind=kind, **arguments
        )

    def sink(
        self,
        topic: str,
        serializer: Callable[[Any, T], bytes | None] | None = None,
        *,
        header: Callable[[Any, T], Header] | None = None,
        name: str | None = None,
    ) -> None:
        """Send each record to a topic, exactly once on Ropeway.

        Args:
            topic: Its name.
            serializer: Makes the body of key and value; by default the value's text.
                None takes the header's key out of a compacted topic.
            header: Makes the message's KEYS, tag and properties of key and value; by
                default there are none.
            name: The step's name.
        """
        self._add(
            Operator.SINK, name, None, topic=topic, serializer=serializer, header=header
        )

    def foreach(self, action: Callable[[T], None], *, name: str | None = None) -> None:
        """Call a function with each value, on any machine; twice after a failure."""
        self._add(Operator.FOREACH, name, None, action=action)

    def print(self, *, name: str | None = None) -> None:
        """Print keys and values where the job was started."""
        self._add(Operator.PRINT, name, None)
