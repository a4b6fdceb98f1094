"""A node that sends its spans to a receiver in this process, and what came there."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.gateway.config import OtlpConfig
from ropeway.gateway.http import exporter
from tests.gateway.http.receiver import receiving
from tests.remoting import TIMEOUT_S, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import pytest

    from ropeway.gateway.app import App
    from tests.gateway.http.receiver import Receiver
    from tests.remoting import Remoting

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
CONTEXT = f"00-{TRACE}-{PARENT}-01"


class Came(NamedTuple):
    """A span, as the receiver read it."""

    name: str
    trace: str
    parent: str
    id: str
    began_ns: int
    ended_ns: int
    state: str
    failure: str | None
    """What its status says; None where that is no error."""
    about: dict[str, Any]
    node: str


class Traces:
    """Spans in the order in which they came."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.came: list[Came] = []

    async def until(self, *names: str) -> list[Came]:
        """Wait until spans of these names came; all of them, in this order."""
        async with asyncio.timeout(TIMEOUT_S):
            while sorted(names) != sorted(one.name for one in self.came):
                assert len(self.came) < len(names), self.came
                self.add(
                    await asyncio.to_thread(self.receiver.traces.get, timeout=TIMEOUT_S)
                )
        return sorted(self.came, key=lambda one: names.index(one.name))

    def add(self, request: Any) -> None:
        """Read what came."""
        for resource in request.resource_spans:
            of = {
                one.key: one.value.string_value for one in resource.resource.attributes
            }
            assert of["service.name"] == "ropeway"
            for scope in resource.scope_spans:
                self.came += [
                    _read(span, of["service.instance.id"]) for span in scope.spans
                ]


def _read(span: Any, node: str) -> Came:
    about = {
        one.key: getattr(one.value, one.value.WhichOneof("value"))
        for one in span.attributes
    }
    failed = span.status.code == 2
    return Came(
        *(span.name, span.trace_id.hex(), span.parent_span_id.hex()),
        *(span.span_id.hex(), span.start_time_unix_nano, span.end_time_unix_nano),
        *(span.trace_state, span.status.message if failed else None, about, node),
    )


@asynccontextmanager
async def tracing(
    data: Path, start: Callable[..., Any] = running, **changes: Any
) -> AsyncIterator[tuple[App, Remoting, Traces]]:
    """A node whose spans are sent, a client of it, and what came."""
    with receiving() as receiver:
        otlp = OtlpConfig(receiver.endpoint, metrics=False, traces=True)
        async with (
            start(data, otlp=otlp, **changes) as (app, client),
            exporter.exporting(app),
        ):
            yield app, client, Traces(receiver)


def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have spans sent as soon as there are some."""
    monkeypatch.setattr(exporter, "_SPANS_EVERY_S", 0.01)
