"""What each operator becomes on Spark: the one place that says so.

A function here makes of a node and the frames before it the frame behind it. Operators
without state only add a step; the steps up to the next shuffle or end run as one
`mapInArrow`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from ropeway.streams import bundles, carried, custom_windows, records, windowed
from ropeway.streams.custom_windows import Plan, Windowing
from ropeway.streams.nodes import Node, Operator, TopologyError
from ropeway.streams.stateful import Accumulating, Joining
from ropeway.streams.windows import Session, Sliding, Tumbling, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from ropeway.streams.custom_windows import Late
    from ropeway.streams.mirror import StateMirror
    from ropeway.streams.records import (
        Carry,
        Dead,
        Incoming,
        Outgoing,
        Record,
        Split,
        Step,
    )
    from ropeway.streams.stateful import Stateful

    Maps = Callable[[Node, "list[Frame]", "Site"], "Frame"]

ONTO: dict[Operator, str] = {
    Operator.SOURCE: "readStream.format('ropeway'), a partition a queue",
    Operator.SELECT_TIMESTAMP: "mapInArrow",
    Operator.MAP: "mapInArrow",
    Operator.FLAT_MAP: "mapInArrow",
    Operator.FILTER: "mapInArrow",
    Operator.KEY_BY: "mapInArrow; the next operator's exchange brings keys together",
    Operator.THROUGH: "writeStream and readStream of a topic, a query more",
    Operator.AGGREGATE: "groupBy(key).transformWithState, a value state",
    Operator.WINDOW_AGGREGATE: "withWatermark, groupBy(window, key).agg",
    Operator.JOIN: "union, groupBy(key).transformWithState, a value state a side",
    Operator.WINDOW_JOIN: "withWatermark, stream-stream join on key and window",
    Operator.SINK: "writeStream.format('ropeway')",
    Operator.FOREACH: "mapInArrow into Spark's noop sink",
    Operator.PRINT: "foreachBatch",
}

_BUNDLED_BYTES = 16 * 1024 * 1024
"""What a task reads becomes a row a key, for each such part of it."""
_OWN_WINDOWS = "withWatermark, groupBy(key).transformWithState, timers"
"""Of windows that fire early or idle, tell what is late, or are mirrored."""


@dataclass(frozen=True)
class Frame:
    """A table of Spark's with the steps that are still to be run on it."""

    table: DataFrame
    incoming: Incoming
    """How a batch of the table is read as records."""
    steps: tuple[Step, ...] = ()
    lateness_ms: int = 0
    dead: Dead | None = None
    """Takes what a step fails at; without, the query fails."""
    split: Split | None = None
    """Tells what travels with the records, where something does."""

    def then(self, name: str, step: Step) -> Frame:
        """The same with another step."""
        return replace(self, steps=(*self.steps, records.named(name, step)))

    def run(
        self,
        outgoing: Outgoing,
        columns: str,
        carry: Carry | None = None,
        *,
        at_once_bytes: int = 0,
    ) -> DataFrame:
        """The table behind the steps.

        Args:
            outgoing: Writes records.
            columns: What it writes.
            carry: Writes what travels with them; by default as it is.
            at_once_bytes: Records are written together that come of so many bytes.
        """
        aside = self.split and (self.split, carry or _as_it_is)
        function = records.arrow_function(
            *(self.incoming, self.steps, outgoing, self.dead, aside),
            at_once_bytes=at_once_bytes,
        )
        return self.table.mapInArrow(function, columns)

    def records(self) -> DataFrame:
        """The same as records."""
        return self.run(records.to_records, records.RECORDS)

    def behind(self, table: DataFrame, incoming: Incoming) -> Frame:
        """What a shuffle has made of it."""
        split = self.split and carried.split
        return replace(self, table=table, incoming=incoming, steps=(), split=split)


def _as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


@dataclass(frozen=True)
class Site:
    """Where operators are laid out: what they need besides those before them."""

    open: Callable[..., Frame]
    """Opens the messages that a node reads, with options of the data source."""
    late: Callable[[str], Late]
    """Sends late records to a topic."""
    mirror: Callable[[Node], StateMirror | None] = lambda _node: None
    """Tells others of a node's state."""
    initial: Callable[[Node], DataFrame | None] = lambda _node: None
    """What a node's state begins with."""

    def stateful(
        self,
        node: Node,
        table: DataFrame,
        processor: Stateful,
        columns: str,
        time_mode: str = "None",
    ) -> DataFrame:
        """Run an operator with state over the records of each key."""
        initial = self.initial(node)
        return table.groupBy("key").transformWithState(
            processor,
            columns,
            "Append",
            time_mode,
            None if initial is None else initial.groupBy("key"),
        )


def onto(node: Node) -> str:
    """What a node becomes."""
    return _OWN_WINDOWS if _is_own(node) else ONTO[node.operator]


def tick_ms(node: Node) -> int | None:
    """How often a node looks at the clock; None where it does not."""
    firing = node.arguments.get("firing")
    return firing and firing.tick_ms


def _is_own(node: Node) -> bool:
    return tick_ms(node) is not None or bool(node.arguments.get("late_topic"))


MAPPING: dict[Operator, Maps] = {}


def maps(operator: Operator) -> Callable[[Maps], Maps]:
    """Make a function the one that lays out an operator."""

    def register(function: Maps) -> Maps:
        MAPPING[operator] = function
        return function

    return register


@maps(Operator.SOURCE)
def _source(node: Node, _parents: list[Frame], site: Site) -> Frame:
    deserializer = node.arguments["deserializer"] or _text

    has_header = node.arguments["with_header"]

    def read(_key: Any, value: Any, time_ms: int) -> list[Record]:
        key, made = deserializer(value, *([value.header] if has_header else []))
        return [(key, made, time_ms)]

    frame = replace(site.open(node), lateness_ms=node.arguments["lateness_ms"])
    if node.arguments["by_processing_time"]:
        # Spark keeps the time of each batch, so one that is run again has the same.
        table = frame.table.withColumn("timestamp", sql.current_timestamp())
        frame = replace(frame, table=table)
    return frame.then(node.name, read)


def _text(body: bytes) -> tuple[None, str]:
    return None, body.decode()


@maps(Operator.SELECT_TIMESTAMP)
def _select_timestamp(node: Node, parents: list[Frame], _site: Site) -> Frame:
    timed = records.timed(node.arguments["function"], node.arguments["max_ahead_ms"])
    return parents[0].then(node.name, timed)


@maps(Operator.MAP)
def _map(node: Node, parents: list[Frame], _site: Site) -> Frame:
    function = node.arguments["function"]
    return parents[0].then(
        node.name, lambda key, value, time_ms: [(key, function(value), time_ms)]
    )


@maps(Operator.FLAT_MAP)
def _flat_map(node: Node, parents: list[Frame], _site: Site) -> Frame:
    function = node.arguments["function"]
    return parents[0].then(
        node.name,
        lambda key, value, time_ms: [(key, made, time_ms) for made in function(value)],
    )


@maps(Operator.FILTER)
def _filter(node: Node, parents: list[Frame], _site: Site) -> Frame:
    function = node.arguments["function"]
    return parents[0].then(
        node.name,
        lambda key, value, time_ms: [(key, value, time_ms)] if function(value) else [],
    )


@maps(Operator.KEY_BY)
def _key_by(node: Node, parents: list[Frame], _site: Site) -> Frame:
    select = node.arguments["function"]

    def keyed(_key: Any, value: Any, time_ms: int) -> list[Record]:
        key = select(value)
        records.check_key(key)
        return [(key, value, time_ms)]

    return parents[0].then(node.name, keyed)


@maps(Operator.THROUGH)
def _through(node: Node, _parents: list[Frame], site: Site) -> Frame:
    # What was sent before this query began belongs to the job, too.
    frame = site.open(node, startingOffsets="earliest")
    frame = replace(frame, lateness_ms=_lateness_ms(node))
    return frame.then(node.name, lambda _key, body, _time_ms: [records.from_json(body)])


def _lateness_ms(node: Node) -> int:
    while node.parents:
        node = node.parents[0]
    lateness_ms: int = node.arguments["lateness_ms"]
    return lateness_ms


@maps(Operator.AGGREGATE)
def _aggregate(node: Node, parents: list[Frame], site: Site) -> Frame:
    parent = parents[0]
    processor = Accumulating(
        node.name, node.arguments["make"], parent.dead, site.mirror(node)
    )
    bundled = parent.run(
        bundles.to_bundles, records.RECORDS, at_once_bytes=_BUNDLED_BYTES
    )
    table = site.stateful(node, bundled, processor, records.RECORDS)
    return parent.behind(table, bundles.from_bundles)


@maps(Operator.WINDOW_AGGREGATE)
def _window_aggregate(node: Node, parents: list[Frame], site: Site) -> Frame:
    if _is_own(node) or site.mirror(node) is not None:
        return _own_windows(node, parents[0], site)
    return _spark_windows(node, parents[0])


def _spark_windows(node: Node, parent: Frame) -> Frame:
    given = node.arguments
    kind = given["aggregate"]
    selected = parent.then(node.name, windowed.selecting(kind, given["select"])).run(
        windowed.to_selected, windowed.SELECTED
    )
    grouped = (
        _with_watermark(selected, parent.lateness_ms)
        .groupBy(_window(given["window"]).alias("window"), "key")
        .agg(*windowed.aggregates(kind))
    )
    table = grouped.select(
        "key",
        sql.unix_millis("window.start").alias("begin_ms"),
        sql.unix_millis("window.end").alias("end_ms"),
        *windowed.RESULT,
    )
    make = given["make"] if kind == "aggregate" else None
    incoming = windowed.from_windows(node.name, kind, make, parent.dead)
    return parent.behind(table, incoming)


def _own_windows(node: Node, parent: Frame, site: Site) -> Frame:
    given = node.arguments
    late = given["late_topic"] and site.late(given["late_topic"])
    if isinstance(given["window"], Session) and not hasattr(given["make"](), "merge"):
        raise TopologyError(
            f"step {node.name!r} has sessions and an accumulator without merge(other); "
            "allowed where they fire early or idle, tell what is late, or are "
            "mirrored: one that has it"
        )
    plan = Plan(given["window"], given["make"], given["firing"], late)
    processor = Windowing(node.name, plan, parent.dead, site.mirror(node))
    # Times that Spark does not know for such: it would drop late records unseen.
    timed = _with_watermark(parent.records(), parent.lateness_ms).select(
        "key", "value", sql.unix_millis("ts").alias("at_ms")
    )
    time_mode = "EventTime" if tick_ms(node) is None else "ProcessingTime"
    found = site.stateful(node, timed, processor, custom_windows.RECORDS, time_mode)
    is_late = sql.col("key") == sql.lit(custom_windows.LATE)
    table = (
        found.observe(node.name, sql.count_if(is_late).alias(custom_windows.LATE_COUNT))
        .where(~is_late)
        .select("key", "value", sql.timestamp_millis("at_ms").alias("ts"))
    )
    return parent.behind(table, custom_windows.from_windows)


@maps(Operator.JOIN)
def _join(node: Node, parents: list[Frame], site: Site) -> Frame:
    left, right = (
        frame.records().withColumn("side", sql.lit(side))
        for frame, side in zip(parents, ("left", "right"), strict=True)
    )
    processor = Joining(
        node.name,
        node.arguments["function"],
        parents[0].dead,
        site.mirror(node),
        is_left=node.arguments["how"] == "left",
    )
    table = site.stateful(node, left.union(right), processor, records.RECORDS)
    return parents[0].behind(table, records.from_records)


@maps(Operator.WINDOW_JOIN)
def _window_join(node: Node, parents: list[Frame], _site: Site) -> Frame:
    window = _window(node.arguments["window"])
    left, right = (
        _with_watermark(frame.records(), frame.lateness_ms).select(
            "key", "value", window.alias("window")
        )
        for frame in parents
    )
    left, right = left.alias("left"), right.alias("right")
    how = "leftOuter" if node.arguments["how"] == "left" else "inner"
    is_met = (sql.col("left.key") == sql.col("right.key")) & (
        sql.col("left.window") == sql.col("right.window")
    )
    table = left.join(right, is_met, how).select(
        sql.col("left.key").alias("key"),
        sql.col("left.value").alias("value"),
        sql.col("right.value").alias("other"),
        sql.unix_millis("left.window.end").alias("end_ms"),
    )
    function = node.arguments["function"]
    return (
        parents[0]
        .behind(table, windowed.from_pairs)
        .then(node.name, lambda key, pair, time_ms: [(key, function(*pair), time_ms)])
    )


def _with_watermark(table: DataFrame, lateness_ms: int) -> DataFrame:
    return table.withWatermark("ts", f"{lateness_ms} milliseconds")


def _window(window: Window) -> Column:
    match window:
        case Tumbling(size_ms):
            return sql.window("ts", f"{size_ms} milliseconds")
        case Sliding(size_ms, slide_ms):
            return sql.window(
                "ts", f"{size_ms} milliseconds", f"{slide_ms} milliseconds"
            )
        case Session(gap_ms):
            return sql.session_window("ts", f"{gap_ms} milliseconds")
