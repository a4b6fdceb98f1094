"""`ropeway streams top`."""

from __future__ import annotations

import io
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from ropeway.client import MessageQueue
from ropeway.client.query_consumer import QueryConsumer
from ropeway.client.running_queries import Batch, Query
from ropeway.gateway.cli.streams_top import bars
from tests.gateway.cli.connected import beside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BATCHES = [
    Batch(-49_000, 6, 99_999, None, 1_000, 50),
    Batch(11_000, 7, 10, None, 1_000, 50),
    Batch(12_000, 8, 30, None, 500, 20),
    Batch(14_000, 9, 40, None, 2_000, 0),
]


def test_running_queries_are_shown_with_plots(run, ropeway_gateway, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "1")
    group = f"q-{ropeway_topic}"
    queries = [
        Query("counts", BATCHES),
        Query("new", []),
        Query("told", [Batch(5_000, 0, 8, 6, 4_000, 3)]),
    ]

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with QueryConsumer(ropeway_gateway.name_server, group) as consumer:
            queue = MessageQueue(ropeway_topic, "broker-0", 0)
            await consumer.tell(queries, {queue: 80})
            yield

    with beside(running()):
        text = run("streams", "top", "--once").stdout
        data = run("streams", "top", "--once", "--group", group, "--json").stdout
    counts, new, told = json.loads(data)
    assert (counts["query"], counts["group"], counts["batch"]) == ("counts", group, 9)
    assert (counts["rows_in_per_s"], counts["rows_out_per_s"]) == (20.0, None)
    assert (counts["batch_ms"], counts["lag"]) == (2_000, 0)
    assert [one["rows_in"] for one in counts["batches"]] == [99_999, 10, 30, 40]
    assert new["batches"] == []
    assert (told["rows_in_per_s"], told["rows_out_per_s"]) == (2.0, 1.5)
    lines = text.splitlines()
    at = lines.index("counts, 4 batches")
    assert lines[at + 1 : at + 4] == [
        "  rows in   █▁▁▁  0 to 99999",
        "  batch ms  ▄▄▂█  0 to 2000",
        "  lag       ██▃▁  0 to 50",
    ]


def test_it_says_where_none_runs(run, ropeway_topic):
    shown = run("streams", "top", "--once", "--group", f"q-{ropeway_topic}")
    assert shown.stdout == "no query runs that has the option group\n"


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "▁ ▄█"), ("ascii", "_ =#")])
def test_bars_are_what_the_terminal_can_show(monkeypatch, encoding, shown):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert bars([0, None, 4, 8]) == shown
    assert bars([]) == ""
    assert len(bars([0, 0])) == 2
