"""What a span tells: data, without OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Event(NamedTuple):
    """Something that was done with one message, or with a batch."""

    operation: str
    """One of `send`, `receive`, `ack`, `forward`."""
    destination: str
    """The topic; for `forward` the node's address."""
    began_ns: int
    """Since 1970."""
    ended_ns: int
    about: Mapping[str, str | int]
    """Attributes by their names in the conventions."""
    failure: str = ""
    """Why it failed; nothing where it did not."""
    span_id: int = 0
    """What others know it by already; 0: nobody knows of it."""
