"""Running queries of Spark."""

from __future__ import annotations

from ropeway.gateway.cli.rows import Row


class QueryBatch(Row, frozen=True):
    """A batch of a query; null is what its sink does not tell."""

    ended_ms: int
    batch: int
    rows_in: int
    rows_out: int | None
    batch_ms: int
    lag: int


class QueryRow(Row, frozen=True):
    """A query that runs, with its batches; null is what none of them tells."""

    query: str
    group: str
    client_id: str
    batch: int | None
    rows_in_per_s: float | None
    rows_out_per_s: float | None
    batch_ms: int | None
    lag: int | None
    batches: list[QueryBatch]
