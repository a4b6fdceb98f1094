"""W3C trace contexts as messages carry them: in their properties.

Only those that are sampled count: what is not recorded elsewhere is not recorded here.

Source: W3C, "Trace Context", 2021, 3.2 and 3.3; RocketMQ's gRPC clients give it as
SystemProperties.trace_context, which RocketMQ stores as TRACE_CONTEXT.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from collections.abc import Mapping

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
TRACE_CONTEXT = "TRACE_CONTEXT"

MOST = 128
"""Contexts of one batch that are recorded."""

_VALUE = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf]"
_SAMPLED = re.compile(_VALUE).match
_IS_SPAN = re.compile(r"[0-9a-f]{16}").fullmatch
_NAMES = TRACEPARENT.encode(), TRACE_CONTEXT.encode()
# In a frame's JSON, 0x01 is an escape.
_IN_BYTES = re.compile(
    rf"(?:{TRACEPARENT}|{TRACE_CONTEXT})(?:\x01|\\u0001)({_VALUE})".encode()
)


_SPAN = slice(36, 52)
"""Where a traceparent has its span."""


class Parent(NamedTuple):
    """What a message says of the trace that it belongs to."""

    traceparent: str
    tracestate: str = ""

    def under(self, spans: Mapping[str, str]) -> Parent:
        """The same below a span that stands below it, where `spans` has one."""
        span = spans.get(self.traceparent)
        if span is None:
            return self
        before, after = self.traceparent[: _SPAN.start], self.traceparent[_SPAN.stop :]
        return Parent(f"{before}{span}{after}", self.tracestate)


def tell(spans: Mapping[Parent, int]) -> str:
    """Spans that stand below contexts, for another node."""
    return ",".join(f"{one.traceparent}={span:016x}" for one, span in spans.items())


def told(text: str) -> dict[str, str]:
    """What `tell` told: spans by traceparents; what is none is left out."""
    pairs = (one.partition("=") for one in text.split(","))
    return {above: span for above, _, span in pairs if _IS_SPAN(span)}


def of_pairs(pairs: Mapping[str, str]) -> Parent | None:
    """The sampled context among a message's properties."""
    for name in (TRACEPARENT, TRACE_CONTEXT):
        value = pairs.get(name)
        if value is not None and _SAMPLED(value):
            return Parent(value, pairs.get(TRACESTATE, ""))
    return None


def of_text(text: str) -> Parent | None:
    """The same from properties in wire form."""
    if TRACEPARENT not in text and TRACE_CONTEXT not in text:
        return None
    return of_pairs(properties.parse(text))


def may_have(data: bytes) -> bool:
    """Whether a look at stored messages is worth while."""
    return any(name in data for name in _NAMES)


def found_in(data: bytes) -> list[Parent]:
    """The sampled contexts of a frame's header, or of a batch's body: each once.

    Where they stand is not looked at: text of a body that reads like properties counts.
    """
    if not may_have(data):
        return []
    values = dict.fromkeys(found[1].decode() for found in _IN_BYTES.finditer(data))
    return [Parent(value) for value in list(values)[:MOST]]
