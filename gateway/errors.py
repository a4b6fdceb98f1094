"""What keeps a node from starting: errors that its command turns into a line."""

from __future__ import annotations


class ServerError(Exception):
    """An endpoint cannot be opened; the text says which and why."""


class WorkerError(Exception):
    """A worker cannot be kept running; the text says which and why."""
