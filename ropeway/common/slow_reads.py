"""Reads that a request waited for, noted where somebody wants to know of them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class SlowRead(NamedTuple):
    """A read from somewhere else than memory and the log's own files."""

    place: str
    """What was read: the name of an object in a tier."""
    began_ns: int
    """Since 1970."""
    ended_ns: int


NOTED: ContextVar[list[SlowRead] | None] = ContextVar("slow_reads", default=None)
"""Where the reads of the current task are noted; None: nobody wants to know."""
