"""Trace contexts are found in properties, frames and batches, if they are sampled."""

import pytest

from ropeway.gateway.tracing import trace_context
from ropeway.gateway.tracing.trace_context import Parent
from ropeway.gateway.wire import properties
from tests.requests import batch_of, sending

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""Of W3C's specification."""


def test_a_sampled_context_is_found_with_its_state():
    pairs = {"a": "b", "traceparent": SAMPLED, "tracestate": "congo=t61rcWkgMzE"}
    assert trace_context.of_text(properties.dump(pairs)) == Parent(
        SAMPLED, "congo=t61rcWkgMzE"
    )
    grpc = properties.dump({"TRACE_CONTEXT": SAMPLED})
    assert trace_context.of_text(grpc) == Parent(SAMPLED)


@pytest.mark.parametrize(
    "pairs",
    [
        {},
        {"KEYS": "traceparent"},
        {"traceparent": SAMPLED[:-1] + "0"},
        {"traceparent": SAMPLED[:-1]},
        {"traceparent": SAMPLED.upper()},
        {"traceparent": ""},
        {"TRACE_CONTEXT": "of another tracer"},
        {"my-traceparent": SAMPLED},
    ],
)
def test_what_is_not_sampled_or_no_context_is_none(pairs):
    assert trace_context.of_text(properties.dump(pairs)) is None


def test_contexts_are_found_in_batches_and_frames_each_once():
    pairs = {"traceparent": SAMPLED}
    assert trace_context.found_in(batch_of(b"1", b"2", pairs=pairs)) == [
        Parent(SAMPLED)
    ]
    assert trace_context.found_in(batch_of(b"traceparent", b"2")) == []
    escaped = sending("orders", pairs=pairs).properties.replace("\x01", "\\u0001")
    assert trace_context.found_in(escaped.encode()) == [Parent(SAMPLED)]
    many = {one: SAMPLED.replace("0af7", f"{one:04x}") for one in range(200)}
    body = b"".join(batch_of(b"", pairs={"traceparent": one}) for one in many.values())
    assert len(trace_context.found_in(body)) == trace_context.MOST


def test_what_is_told_to_another_node_is_put_between_a_context_and_its_spans():
    above, other = Parent(SAMPLED, "congo=t61"), Parent(SAMPLED.replace("0af7", "1af7"))
    spans = trace_context.told(trace_context.tell({above: 0xABC, other: 1}))
    assert above.under(spans) == Parent(
        SAMPLED.replace("b7ad6b7169203331", f"{0xABC:016x}"), "congo=t61"
    )
    assert other.under(spans).traceparent.split("-")[2] == f"{1:016x}"
    assert Parent(SAMPLED[:-1] + "3").under(spans).traceparent == SAMPLED[:-1] + "3"


@pytest.mark.parametrize("text", ["", ",", "=", f"{SAMPLED}=", f"{SAMPLED}={'g' * 16}"])
def test_spans_that_are_none_are_left_out(text):
    assert trace_context.told(text) == {}
