"""The metrics as OpenTelemetry has them, sent to whoever collects them by OTLP.

The only file that names OpenTelemetry. Our counts and histograms are made as requests
are worked on, and told as they are: the SDK's own instruments would count everything a
second time.

Source: OpenTelemetry, "OTLP metrics"; "Prometheus and OpenMetrics compatibility".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ropeway.gateway import __version__
from ropeway.gateway.http.metrics.of_process import STARTED_S
from ropeway.gateway.http.metrics.text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ropeway.gateway.http.metrics.text import Page

_S = 1_000_000_000
_STARTED_NS = int(STARTED_S * _S)
_UNKNOWN: Any = None
"""Left out of what is sent."""
_BATCH = 2000
"""Samples of one message: gRPC's receivers take 4 MiB, which are some 20,000."""


class Exporter:
    """A connection to a receiver, made when something is to be sent.

    Args:
        endpoint: The receiver's gRPC port, as http://HOST:PORT or, for TLS, https.
        node_name: Which node this is.
    """

    def __init__(self, endpoint: str, node_name: str) -> None:
        # What it asks the environment for it asks by itself: headers, certificates,
        # compression, time-outs (OTEL_EXPORTER_OTLP_*).
        self._exporter = OTLPMetricExporter(endpoint, max_export_batch_size=_BATCH)
        self._resource = Resource.create(
            {
                "service.name": "ropeway",
                "service.version": __version__,
                "service.instance.id": node_name,
            }
        )

    def send(self, page: Page) -> bool:
        """Send all samples of a page; whether the receiver took them. Blocks."""
        data = _data(page, self._resource, time.time_ns())
        return self._exporter.export(data) is MetricExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection; what is being sent is given up."""
        self._exporter.shutdown(timeout_millis=0)


def _data(page: Page, resource: Resource, now_ns: int) -> MetricsData:
    metrics = [
        Metric(
            family.name,
            family.meaning,
            # As the name has it already, and readers would add what stands here.
            unit="",
            data=_KINDS[family.kind](lines, now_ns),
        )
        for family, lines in page.families()
    ]
    scope = ScopeMetrics(InstrumentationScope("ropeway", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _points(lines: Sequence[str], now_ns: int) -> Iterator[NumberDataPoint]:
    for line in lines:
        _, labels, value = parse(line)
        yield NumberDataPoint(labels, _STARTED_NS, now_ns, value)


def _gauge(lines: Sequence[str], now_ns: int) -> Gauge:
    return Gauge(list(_points(lines, now_ns)))


def _sum(lines: Sequence[str], now_ns: int) -> Sum:
    return Sum(
        list(_points(lines, now_ns)),
        AggregationTemporality.CUMULATIVE,
        is_monotonic=True,
    )


def _histogram(lines: Sequence[str], now_ns: int) -> Histogram:
    """From its buckets' lines, then that of its sum, then that of its count."""
    points = []
    bounds: list[float] = []
    up_to: list[int] = []
    total = 0.0
    for line in lines:
        name, labels, value = parse(line)
        if bound := labels.pop("le", None):
            bounds.append(float(bound))
            up_to.append(int(value))
        elif name.endswith("_sum"):
            total = value
        else:
            counts = [
                count - before
                for count, before in zip(up_to, (0, *up_to), strict=False)
            ]
            points.append(
                HistogramDataPoint(
                    labels,
                    _STARTED_NS,
                    now_ns,
                    count=int(value),
                    sum=total,
                    bucket_counts=counts,
                    explicit_bounds=bounds[:-1],
                    min=_UNKNOWN,
                    max=_UNKNOWN,
                )
            )
            bounds, up_to = [], []
    return Histogram(points, AggregationTemporality.CUMULATIVE)


_KINDS: dict[str, Callable[[Sequence[str], int], Sum | Gauge | Histogram]] = {
    "gauge": _gauge,
    "counter": _sum,
    "histogram": _histogram,
}
