"""A receiver of OTLP metrics and spans, by OpenTelemetry's own stubs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as stubs
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_stubs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Traces(trace_stubs.TraceServiceServicer):
    """Keeps the spans that it is sent."""

    def __init__(self, came: SimpleQueue[ExportTraceServiceRequest]) -> None:
        self._came = came

    def Export(self, request, _):  # noqa: N802 - gRPC's name
        self._came.put(request)
        return ExportTraceServiceResponse()


class Receiver(stubs.MetricsServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.came: SimpleQueue[ExportMetricsServiceRequest] = SimpleQueue()
        self.traces: SimpleQueue[ExportTraceServiceRequest] = SimpleQueue()
        self.endpoint = ""

    def Export(self, request, _):  # noqa: N802 - gRPC's name
        self.came.put(request)
        return ExportMetricsServiceResponse()


@contextmanager
def receiving(address: str = "127.0.0.1:0") -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(2))
    stubs.add_MetricsServiceServicer_to_server(receiver, server)
    trace_stubs.add_TraceServiceServicer_to_server(_Traces(receiver.traces), server)
    port = server.add_insecure_port(address)
    receiver.endpoint = f"http://127.0.0.1:{port}"
    server.start()
    try:
        yield receiver
    finally:
        server.stop(None).wait()


def values(request: ExportMetricsServiceRequest) -> dict:
    """Metrics by their name: each a list of its attributes and its point."""
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    found = {}
    for metric in scope.metrics:
        data = getattr(metric, metric.WhichOneof("data"))
        found.setdefault(metric.name, []).extend(
            ({one.key: one.value.string_value for one in point.attributes}, point)
            for point in data.data_points
        )
    return found
