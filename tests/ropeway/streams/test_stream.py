"""Every stream can end in a topic, a function, or what is printed."""

from __future__ import annotations

from ropeway.streams import StreamBuilder
from ropeway.streams.nodes import Operator


def test_a_stream_ends_as_often_as_it_is_told_to() -> None:
    builder = StreamBuilder("job")
    lines = builder.source("lines")
    for stream in (lines, lines.key_by(str)):
        stream.sink("there", repr)
        stream.foreach(len)
        stream.print(name=f"print-{type(stream).__name__}")
    ends = builder.build().queries
    assert [node.operator for node in ends] == [
        Operator.SINK, Operator.FOREACH, Operator.PRINT
    ] * 2  # fmt: skip
    assert ends[0].arguments == {
        "topic": "there",
        "serializer": repr,
        "header": None,
    }
    assert ends[1].arguments == {"action": len}
    assert ends[-1].name == "print-GroupedStream"
