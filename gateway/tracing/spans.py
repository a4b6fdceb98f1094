"""Spans: made when something was done, kept until they are sent, by OpenTelemetry.

A span is made at its end, with the time of its beginning, and only below a context
that a message brought: so nothing is made, and nothing is looked up, for messages
without one. The data model, the parsing of contexts, ids and the export are
OpenTelemetry's own. Its tracers are left alone, which look up samplers, limits and the
current span for each, and so is its thread that sends: `http/exporter.py` does.

Source: OpenTelemetry, "Semantic conventions for messaging systems", and "for RocketMQ".
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ropeway.gateway import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.common.slow_reads import SlowRead
    from ropeway.gateway.tracing.event import Event
    from ropeway.gateway.tracing.trace_context import Parent

KEPT = 8192
"""Spans that wait to be sent, some 8 MB; the oldest are lost when there are more."""
BATCH = 512
"""Spans of one message to the receiver, as of OpenTelemetry's own processor."""

_TYPES = {"send": "send", "receive": "receive", "ack": "settle", "forward": "send"}
"""Operations, and their types in the conventions."""
_KINDS = {"forward": SpanKind.CLIENT}
_WELL = Status(StatusCode.UNSET)
_SCOPE = InstrumentationScope("ropeway", __version__)
_CONTEXT = TraceContextTextMapPropagator()
_NOTHING = Context()


class Spans:
    """Records spans, and sends them to a receiver.

    Args:
        endpoint: The receiver's gRPC port, as http://HOST:PORT or, for TLS, https.
        node_name: Which node this is.
    """

    def __init__(self, endpoint: str, node_name: str) -> None:
        # Headers, certificates, compression, time-outs: OTEL_EXPORTER_OTLP_*.
        self._exporter = OTLPSpanExporter(endpoint)
        self._kept: deque[ReadableSpan] = deque(maxlen=KEPT)
        self._ids = RandomIdGenerator()
        self._resource = Resource.create(
            {
                "service.name": "ropeway",
                "service.version": __version__,
                "service.instance.id": node_name,
            }
        )

    def record(
        self, parent: Parent, event: Event, reads: Iterable[SlowRead] = ()
    ) -> None:
        """Make a span, with one below it for each read that it waited for."""
        carrier = {"traceparent": parent.traceparent, "tracestate": parent.tracestate}
        above = get_current_span(_CONTEXT.extract(carrier, _NOTHING)).get_span_context()
        if not above.is_valid:
            return
        about: dict[str, str | int] = {
            "messaging.system": "rocketmq",
            "messaging.operation.name": event.operation,
            "messaging.operation.type": _TYPES[event.operation],
            "messaging.destination.name": event.destination,
            **event.about,
        }
        span = self._keep(
            *(above, f"{event.operation} {event.destination}", about),
            *(_KINDS.get(event.operation, SpanKind.SERVER), event.failure),
            (event.began_ns, event.ended_ns),
            event.span_id,
        )
        for read in reads:
            place: dict[str, str | int] = {"ropeway.tier.object": read.place}
            self._keep(
                *(span, "read tier", place),
                *(SpanKind.CLIENT, "", (read.began_ns, read.ended_ns)),
            )

    def _keep(
        self,
        above: SpanContext,
        name: str,
        about: dict[str, str | int],
        kind: SpanKind,
        failure: str,
        times_ns: tuple[int, int],
        span_id: int = 0,
    ) -> SpanContext:
        context = SpanContext(
            above.trace_id,
            span_id or self.new_id(),
            is_remote=False,
            trace_flags=above.trace_flags,
            trace_state=above.trace_state,
        )
        self._kept.append(
            ReadableSpan(
                name,
                context,
                above,
                self._resource,
                about,
                kind=kind,
                status=Status(StatusCode.ERROR, failure) if failure else _WELL,
                start_time=times_ns[0],
                end_time=times_ns[1],
                instrumentation_scope=_SCOPE,
            )
        )
        return context

    def new_id(self) -> int:
        """An id for a span that others are to know of before it is recorded."""
        return self._ids.generate_span_id()

    def take(self) -> list[ReadableSpan]:
        """Take the oldest spans that wait to be sent, at most `BATCH`."""
        return [self._kept.popleft() for _ in range(min(BATCH, len(self._kept)))]

    def send(self, spans: list[ReadableSpan]) -> bool:
        """Send spans; whether the receiver took them. Blocks."""
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection; what is being sent is given up."""
        self._exporter.shutdown(timeout_millis=0)
