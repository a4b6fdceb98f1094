"""Queries of Spark that a consumer runs, as it says itself: the batches done last.

RocketMQ's ConsumerRunningInfo has properties, texts by name, for what clients want to
say. One of them is ours.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

PROPERTY = "ROPEWAY_QUERIES"

_QUERIES = re.compile(rf'"{PROPERTY}"\s*:\s*("(?:[^"\\]|\\.)*")'.encode())


class Batch(Struct, frozen=True, array_like=True):
    """A batch of a query."""

    ended_ms: int
    number: int
    rows_in: int
    rows_out: int | None
    """None where its sink does not tell."""
    took_ms: int
    lag: int
    """Messages that it left for later ones."""


class Query(Struct, frozen=True):
    """A query that runs."""

    name: str
    batches: list[Batch]
    """Those done last, in order."""


def encode(queries: list[Query]) -> str:
    """The property's text."""
    return msgspec.json.encode(queries).decode()


def read(body: bytes) -> list[Query]:
    """Read the queries of a ConsumerRunningInfo; most consumers have none.

    Raises:
        msgspec.DecodeError: They are not of this kind.
    """
    found = _QUERIES.search(body)
    if found is None:
        return []
    return msgspec.json.decode(
        msgspec.json.decode(found[1], type=str), type=list[Query]
    )
