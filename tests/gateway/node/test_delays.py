"""Where a message goes first that asks for a delay."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.delays import Diverted
from ropeway.gateway.node.timer.pending_timers import BadTimeError
from ropeway.gateway.wire import properties
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.node.node import Node

NOW_MS = 1_800_000_000_000


def diverted(node: Node, **pairs: str) -> Diverted:
    topic = node.topics.get("orders")
    asked = {"a": "b", **pairs}
    return node.delays.divert(topic, 2, asked, properties.dump(asked), NOW_MS)


@looped
async def test_a_level_has_a_queue_and_a_time_has_the_timer(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        level = diverted(app.node, DELAY="3", TIMER_DELAY_SEC="9")
        assert level.topic.name == "SCHEDULE_TOPIC_XXXX"
        assert (level.queue_id, level.due_ms) == (2, None)
        kept = {"a": "b", "DELAY": "3", "REAL_TOPIC": "orders", "REAL_QID": "2"}
        assert properties.parse(level.text) == kept
        timed = diverted(app.node, TIMER_DELAY_SEC="9")
        assert timed.topic is app.node.timer.topic
        assert (timed.queue_id, timed.due_ms) == (0, NOW_MS + 9000)
        assert properties.parse(timed.text)["REAL_TOPIC"] == "orders"


@looped
@pytest.mark.parametrize(
    "pairs",
    [
        {},
        {"DELAY": "0"},
        {"DELAY": "none"},
        {"TIMER_DELIVER_MS": str(NOW_MS)},
        {"DELAY": "0", "TIMER_DELAY_MS": "-5"},
    ],
)
async def test_what_is_due_stays_where_it_is(tmp_path: Path, pairs):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        place = diverted(app.node, **pairs)
        topic = app.node.topics.get("orders")
        text = properties.dump({"a": "b", **pairs})
        assert place == Diverted(topic, 2, text, None)


@looped
async def test_a_time_too_far_away_is_refused(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        far_ms = time.time_ns() // 1_000_000 + app.node.timer.max_delay_ms * 2
        with pytest.raises(BadTimeError, match="should not be bigger than"):
            diverted(app.node, TIMER_DELIVER_MS=str(far_ms))
