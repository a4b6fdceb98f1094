"""Spans are made below valid contexts alone, kept in bounds, and read by a receiver."""

from ropeway.common.slow_reads import SlowRead
from ropeway.gateway.tracing import spans as tracing
from ropeway.gateway.tracing.event import Event
from ropeway.gateway.tracing.spans import Spans
from ropeway.gateway.tracing.trace_context import Parent
from tests.gateway.http.receiver import receiving
from tests.gateway.tracing.traces import CONTEXT, PARENT, TRACE, Traces

SENT = Event("send", "orders", 10, 20, {"messaging.message.body.size": 6})
KEPT = Parent(CONTEXT, "congo=t61rcWkgMzE")
SERVER, CLIENT = 2, 3


def test_a_span_is_sent_as_it_was_recorded_with_reads_below_it():
    with receiving() as receiver:
        spans = Spans(receiver.endpoint, "node-0")
        failed = Event(*SENT[:5], failure="13: no body")
        spans.record(KEPT, failed, [SlowRead("tier/00.data", 11, 12)])
        assert spans.send(spans.take())
        spans.close()
        request = receiver.traces.get(timeout=60)
        kinds = [
            span.kind
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        assert kinds == [SERVER, CLIENT]
        traces = Traces(receiver)
        traces.add(request)
    send, read = traces.came
    assert (send.trace, send.parent, send.state) == (TRACE, PARENT, KEPT.tracestate)
    assert (send.began_ns, send.ended_ns, send.failure) == (10, 20, "13: no body")
    assert send.node == "node-0"
    assert (read.trace, read.parent) == (TRACE, send.id)
    assert (read.began_ns, read.ended_ns, read.failure) == (11, 12, None)
    assert send.id != read.id


def test_an_id_of_zeros_or_an_unknown_version_is_no_parent():
    spans = Spans("http://127.0.0.1:1", "node-0")
    for text in (
        CONTEXT.replace(TRACE, "0" * 32),
        CONTEXT.replace(PARENT, "0" * 16),
        f"ff{CONTEXT[2:]}",
    ):
        spans.record(Parent(text), SENT)
    assert spans.take() == []
    spans.close()


def test_the_oldest_are_lost_when_too_many_wait_and_batches_are_bounded(monkeypatch):
    monkeypatch.setattr(tracing, "KEPT", 3)
    monkeypatch.setattr(tracing, "BATCH", 2)
    spans = Spans("http://127.0.0.1:1", "node-0")
    for number in range(5):
        spans.record(KEPT, Event("send", f"topic-{number}", 1, 2, {}))
    assert [one.name for one in spans.take()] == ["send topic-2", "send topic-3"]
    assert [one.name for one in spans.take()] == ["send topic-4"]
    spans.close()
