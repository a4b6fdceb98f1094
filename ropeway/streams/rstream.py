"""What a user writes: streams, grouped streams, windows and joins, linked by methods.

Nothing runs here: each method adds a logical node. `name=` gives it another name than
its number.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ropeway.streams.aggregates import KINDS
from ropeway.streams.nodes import Graph, Node, Operator, TopologyError
from ropeway.streams.stream import Stream
from ropeway.streams.windows import Firing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.streams.aggregates import Accumulator
    from ropeway.streams.windows import Window

K = TypeVar("K")
L = TypeVar("L")
T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class RStream(Stream[T]):
    """A stream of values; each has a key, perhaps None, and a time."""

    def select_timestamp(
        self,
        select: Callable[[T], int],
        *,
        max_ahead_ms: int | None = None,
        name: str | None = None,
    ) -> RStream[T]:
        """Take the time of each record from its value.

        Args:
            select: Gives milliseconds since 1970.
            max_ahead_ms: How far a time may be ahead of the one that the record had, so
                that a clock that is wrong does not make all others late; the step fails
                at such a record. None allows any.
            name: The step's name.

        Raises:
            TopologyError: A time below 0.
        """
        if max_ahead_ms is not None and max_ahead_ms < 0:
            raise TopologyError(
                f"select_timestamp behind {self._node.name!r}: max_ahead_ms is "
                f"{max_ahead_ms}; allowed: from 0, or None"
            )
        node = self._add(
            Operator.SELECT_TIMESTAMP,
            name,
            None,
            function=select,
            max_ahead_ms=max_ahead_ms,
        )
        return RStream(self._graph, node)

    def map(self, function: Callable[[T], U], *, name: str | None = None) -> RStream[U]:
        """Make another value of each."""
        return RStream(
            self._graph, self._add(Operator.MAP, name, None, function=function)
        )

    def flat_map(
        self, function: Callable[[T], Iterable[U]], *, name: str | None = None
    ) -> RStream[U]:
        """Make any number of values of each."""
        return RStream(
            self._graph, self._add(Operator.FLAT_MAP, name, None, function=function)
        )

    flat_map_values = flat_map

    def filter(
        self, function: Callable[[T], bool], *, name: str | None = None
    ) -> RStream[T]:
        """Keep those for which a function says so."""
        return RStream(
            self._graph, self._add(Operator.FILTER, name, None, function=function)
        )

    def key_by(
        self, select: Callable[[T], K], *, name: str | None = None
    ) -> GroupedStream[K, T]:
        """Group by a key: text, bytes, numbers, or tuples of those."""
        node = self._add(Operator.KEY_BY, name, None, function=select)
        return GroupedStream(self._graph, node)

    def join(self, other: RStream[U]) -> JoinedStream[T, U]:
        """Bring together values of two streams that have the same key."""
        return self._join(other, "inner")

    def left_join(self, other: RStream[U]) -> JoinedStream[T, U]:
        """The same; where the other stream has nothing, its value is None."""
        return self._join(other, "left")

    def _join(self, other: RStream[U], how: str) -> JoinedStream[T, U]:
        if other._graph is not self._graph:
            raise TopologyError(
                f"join of jobs {self._graph.job_id!r} and "
                f"{other._graph.job_id!r}; allowed: streams of one builder"
            )
        return JoinedStream(self._graph, self._node, other._node, how)


class GroupedStream(Stream[T], Generic[K, T]):
    """A stream of values by key. An aggregate gives its result with every record."""

    def count(
        self, select: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> GroupedStream[K, int]:
        """How many records there were, of those where the selection is not None."""
        return self._named("count", select, name)

    def min(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[K, U]:
        """The smallest selection so far."""
        return self._named("min", select, name)

    def max(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[K, U]:
        """The largest selection so far."""
        return self._named("max", select, name)

    def sum(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[K, U]:
        """The sum of the selections so far."""
        return self._named("sum", select, name)

    def avg(
        self, select: Callable[[T], float], *, name: str | None = None
    ) -> GroupedStream[K, float]:
        """The mean of the selections so far."""
        return self._named("avg", select, name)

    def aggregate(
        self, make: Callable[[], Accumulator], *, name: str | None = None
    ) -> GroupedStream[K, Any]:
        """What an accumulator says; `make` makes one for each key."""
        node = self._add(Operator.AGGREGATE, name, "aggregate", make=make)
        return GroupedStream(self._graph, node)

    def _named(
        self, kind: str, select: Callable[[T], Any] | None, name: str | None
    ) -> GroupedStream[K, Any]:
        make = partial(KINDS[kind], select)
        node = self._add(Operator.AGGREGATE, name, kind, make=make)
        return GroupedStream(self._graph, node)

    def through(
        self, topic: str | None = None, *, name: str | None = None
    ) -> GroupedStream[K, T]:
        """Send the records through a topic, where others can read them.

        They are JSON there: `[key, value, time in ms]`. Records of a key are in one
        queue. A topic that is not there is made, with 8 queues.

        Args:
            topic: Its name; by default that of the next step and `-shuffleTopic`.
            name: The step's name.
        """
        node = self._add(Operator.THROUGH, name, None, topic=topic)
        return GroupedStream(self._graph, node)

    def window(
        self,
        window: Window,
        *,
        early_fire_ms: int | None = None,
        idle_fire_ms: int | None = None,
        late_topic: str | None = None,
    ) -> WindowStream[K, T]:
        """Aggregate by windows of the records' times.

        Args:
            window: Which ones.
            early_fire_ms: How often a window that is not over gives the result that it
                has so far, where it has news; by the clock.
            idle_fire_ms: After how long without news it does so.
            late_topic: Where records go that are late for all their windows.

        Raises:
            TopologyError: A time is too short.
        """
        try:
            firing = Firing(early_ms=early_fire_ms, idle_ms=idle_fire_ms)
        except ValueError as error:
            raise TopologyError(
                f"window behind {self._node.name!r}: {error}"
            ) from error
        return WindowStream(self._graph, self._node, window, firing, late_topic)

    def map(
        self, function: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[K, U]:
        """Make another value of each; keys stay."""
        return GroupedStream(
            self._graph, self._add(Operator.MAP, name, None, function=function)
        )

    def flat_map(
        self, function: Callable[[T], Iterable[U]], *, name: str | None = None
    ) -> GroupedStream[K, U]:
        """Make any number of values of each; keys stay."""
        return GroupedStream(
            self._graph, self._add(Operator.FLAT_MAP, name, None, function=function)
        )

    def filter(
        self, function: Callable[[T], bool], *, name: str | None = None
    ) -> GroupedStream[K, T]:
        """Keep those for which a function says so."""
        return GroupedStream(
            self._graph, self._add(Operator.FILTER, name, None, function=function)
        )

    def to_rstream(self) -> RStream[T]:
        """The same records, ready to be grouped otherwise."""
        return RStream(self._graph, self._node)


class WindowStream(Generic[K, T]):
    """A grouped stream in windows. Each window gives one result, when it is over.

    It is over when the watermark has passed its end: the latest time of any record,
    less the allowed lateness of the source. What comes later for it is late: it is
    counted, and goes to the topic for late records, if there is one. With early or idle
    fire a window may give results before, each of which has more than the one before.
    """

    def __init__(
        self,
        graph: Graph,
        node: Node,
        window: Window,
        firing: Firing,
        late_topic: str | None,
    ) -> None:
        self._graph = graph
        self._node = node
        self._window = window
        self._firing = firing
        self._late_topic = late_topic

    def count(
        self, select: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> GroupedStream[Any, int]:
        """How many records, of those where the selection is not None."""
        return self._add("count", select, name)

    def min(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[Any, U]:
        """The smallest of numbers."""
        return self._add("min", select, name)

    def max(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[Any, U]:
        """The largest of numbers."""
        return self._add("max", select, name)

    def sum(
        self, select: Callable[[T], U], *, name: str | None = None
    ) -> GroupedStream[Any, U]:
        """The sum of numbers."""
        return self._add("sum", select, name)

    def avg(
        self, select: Callable[[T], float], *, name: str | None = None
    ) -> GroupedStream[Any, float]:
        """The mean of numbers."""
        return self._add("avg", select, name)

    def aggregate(
        self, make: Callable[[], Accumulator], *, name: str | None = None
    ) -> GroupedStream[Any, Any]:
        """What an accumulator says, to which each value of the window is added."""
        return self._add("aggregate", None, name, make)

    def _add(
        self,
        kind: str,
        select: Callable[[T], Any] | None,
        name: str | None,
        make: Callable[[], Accumulator] | None = None,
    ) -> GroupedStream[Any, Any]:
        node = self._graph.add(
            Operator.WINDOW_AGGREGATE,
            (self._node,),
            name=name,
            kind=f"window-{kind}",
            window=self._window,
            aggregate=kind,
            select=select,
            make=make or partial(KINDS[kind], select),
            firing=self._firing,
            late_topic=self._late_topic,
        )
        return GroupedStream(self._graph, node)


class JoinedStream(Generic[T, U]):
    """A join that is being told: `where`, `equal_to`, perhaps `window`, `apply`."""

    def __init__(self, graph: Graph, left: Node, right: Node, how: str) -> None:
        self._graph = graph
        self._left = left
        self._right = right
        self._how = how
        self._keys: list[Callable[[Any], Any]] = []
        self._window: Window | None = None

    def where(self, select: Callable[[T], Any]) -> JoinedStream[T, U]:
        """The key of a value of the left stream."""
        self._keys[:1] = [select]
        return self

    def equal_to(self, select: Callable[[U], Any]) -> JoinedStream[T, U]:
        """The key of a value of the right stream."""
        if not self._keys:
            raise TopologyError("join: equal_to before where; allowed: where first")
        self._keys[1:] = [select]
        return self

    def window(self, window: Window) -> JoinedStream[T, U]:
        """Join only values of the same window of event time, all with all.

        Without, a value meets the latest one of the other side: an inner join fires
        with records of either, a left join with those of the left stream.
        """
        self._window = window
        return self

    def apply(
        self,
        function: Callable[[T, Any], R],
        *,
        name: str | None = None,
    ) -> RStream[R]:
        """Make a value of the two; the right one may be None in a left join.

        Raises:
            TopologyError: `where` or `equal_to` is missing.
        """
        if len(self._keys) != len(("where", "equal_to")):
            missing = "equal_to" if self._keys else "where"
            raise TopologyError(
                f"join: {missing} is missing; allowed: where, equal_to, apply"
            )
        sides = tuple(
            self._graph.add(Operator.KEY_BY, (side,), function=select)
            for side, select in zip((self._left, self._right), self._keys, strict=True)
        )
        operator = Operator.JOIN if self._window is None else Operator.WINDOW_JOIN
        node = self._graph.add(
            operator,
            sides,
            name=name,
            kind=f"{self._how}-join",
            how=self._how,
            window=self._window,
            function=function,
        )
        return RStream(self._graph, node)
