"""How records leave a job: each function here makes a node's query, not started yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ropeway.streams import carried, headers, records
from ropeway.streams.nodes import Node, Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ropeway.streams.records import Record
    from ropeway.streams.spark_plan import Frame

    Writes = Callable[[Node, Frame, Mapping[str, str]], DataStreamWriter]

_MESSAGES = "value binary, sharding_key string"
_ALL_MESSAGES = f"{_MESSAGES}, topic string, key string"
"""With those for other topics, where some travel with the records."""


def _sink(node: Node, frame: Frame, options: Mapping[str, str]) -> DataStreamWriter:
    serializer = node.arguments["serializer"] or _as_text
    if (header := node.arguments["header"]) is not None:

        def both(key: Any, value: Any, time_ms: int) -> list[Record]:
            return [(key, (serializer(key, value), header(key, value)), time_ms)]

        return _to_topic(node, frame, options, both, _HEADED)
    return _to_topic(
        node,
        frame,
        options,
        lambda key, value, time_ms: [(key, serializer(key, value), time_ms)],
    )


def _through(node: Node, frame: Frame, options: Mapping[str, str]) -> DataStreamWriter:
    return _to_topic(
        node,
        frame,
        options,
        lambda key, value, time_ms: [
            (key, records.to_json(key, value, time_ms), time_ms)
        ],
    )


def _to_topic(
    node: Node,
    frame: Frame,
    options: Mapping[str, str],
    serialize: records.Step,
    form: _Form | None = None,
) -> DataStreamWriter:
    form = form or _PLAIN
    written = frame.then(node.name, serialize)
    table = (
        written.run(form.messages, form.columns)
        if frame.split is None
        else written.run(form.beside_others, form.all_columns, form.carried)
    )
    return (
        table.writeStream.format("ropeway")
        .options(**options)
        .option("topic", node.arguments["topic"])
    )


def _as_text(_key: Any, value: Any) -> bytes:
    return str(value).encode()


def _to_messages(found: list[Record]) -> pa.RecordBatch:
    keys = [None if key is None else str(key) for key, _, _ in found]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([value for _, value, _ in found], pa.binary()),
            pa.array(keys, pa.string()),
        ],
        names=["value", "sharding_key"],
    )


def _beside_others(found: list[Record]) -> pa.RecordBatch:
    value, sharding_key = _to_messages(found).columns
    none = pa.nulls(len(found), pa.string())
    return pa.RecordBatch.from_arrays(
        [value, sharding_key, none, none],
        names=["value", "sharding_key", "topic", "key"],
    )


def _headed(found: list[Record]) -> pa.RecordBatch:
    plain = _to_messages([(key, body, at) for key, (body, _), at in found])
    more = headers.columns([header for _, (_, header), _ in found])
    return pa.RecordBatch.from_arrays([*plain.columns, *more], names=_HEADED_NAMES)


def _headed_beside_others(found: list[Record]) -> pa.RecordBatch:
    none = pa.nulls(len(found), pa.string())
    return _headed(found).append_column("topic", none)


def _carried_beside_headed(rows: pa.RecordBatch) -> pa.RecordBatch:
    value, sharding_key, topic, key = carried.to_messages(rows).columns
    tag, properties = headers.columns([headers.Header()] * rows.num_rows)[1:]
    return pa.RecordBatch.from_arrays(
        [value, sharding_key, key, tag, properties, topic],
        names=[*_HEADED_NAMES, "topic"],
    )


class _Form(NamedTuple):
    """How the messages of a sink are written, alone and beside others."""

    columns: str
    messages: records.Outgoing
    all_columns: str
    beside_others: records.Outgoing
    carried: records.Carry


_PLAIN = _Form(
    _MESSAGES, _to_messages, _ALL_MESSAGES, _beside_others, carried.to_messages
)
_HEADED = _Form(
    f"{_MESSAGES}, {headers.SENT}",
    _headed,
    f"{_MESSAGES}, {headers.SENT}, topic string",
    _headed_beside_others,
    _carried_beside_headed,
)
_HEADED_NAMES = ["value", "sharding_key", "key", "tag", "properties"]


def _foreach(node: Node, frame: Frame, _options: Mapping[str, str]) -> DataStreamWriter:
    action = node.arguments["action"]

    def act(_key: Any, value: Any, _time_ms: int) -> list[Record]:
        action(value)
        return []

    return frame.then(node.name, act).records().writeStream.format("noop")


def _print(_node: Node, frame: Frame, _options: Mapping[str, str]) -> DataStreamWriter:
    return frame.run(_to_lines, "line string").writeStream.foreachBatch(_print_lines)


def _to_lines(found: list[Record]) -> pa.RecordBatch:
    lines = [f"{key}: {value}" for key, value, _ in found]
    return pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], names=["line"])


def _print_lines(table: DataFrame, _number: int) -> None:
    for row in table.toLocalIterator():
        print(row.line)  # noqa: T201 - what was asked for


WRITING: dict[Operator, Writes] = {
    Operator.SINK: _sink,
    Operator.THROUGH: _through,
    Operator.FOREACH: _foreach,
    Operator.PRINT: _print,
}
