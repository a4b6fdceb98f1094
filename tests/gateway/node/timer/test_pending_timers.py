"""Delivery times as producers ask for them, and what waits for one."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.node.timer.pending_timers import (
    RECALL,
    BadTimeError,
    asked_ms,
)
from ropeway.gateway.wire import message, properties

NOW_MS = 1_800_000_000_000
MOST_MS = 1_000_000


def record(text: str | bytes, offset: int = 7) -> bytes:
    return message.encode(
        message.Message(
            topic="rmq_sys_wheel_timer",
            queue_id=0,
            queue_offset=offset,
            message_id=0,
            body=b"x",
            properties=text if isinstance(text, str) else text.decode(),
            store_ms=NOW_MS,
        )
    )


def said(text: str | bytes) -> tuple[int, int, bytes]:
    """When it is due, its queue and its identity."""
    ((*_, due_ms, queue_id, identity),), _ = pending_timers.waiting_in(record(text))
    return due_ms, queue_id, identity


@pytest.mark.parametrize(
    ("pairs", "due_ms"),
    [
        ({}, None),
        ({"TIMER_DELAY_SEC": "3"}, NOW_MS + 3000),
        ({"TIMER_DELAY_MS": "3"}, NOW_MS + 3),
        ({"TIMER_DELIVER_MS": f"{NOW_MS + 7}"}, NOW_MS + 7),
        ({"__STARTDELIVERTIME": f"{NOW_MS + 7}"}, NOW_MS + 7),
        ({"TIMER_DELAY_SEC": "2", "TIMER_DELAY_MS": "3"}, NOW_MS + 2000),
        ({"TIMER_DELAY_MS": "3", "TIMER_DELIVER_MS": "1"}, NOW_MS + 3),
        ({"TIMER_DELIVER_MS": f"{NOW_MS}"}, None),
        ({"TIMER_DELIVER_MS": "-1"}, None),
        ({"TIMER_DELAY_SEC": "0"}, None),
        ({"TIMER_DELAY_MS": "-1"}, None),
        ({"TIMER_DELAY_MS": f"{MOST_MS}"}, NOW_MS + MOST_MS),
        ({"TIMER_DELAY_MS": "3", "TIMER_OUT_MS": "1"}, None),
    ],
)
def test_a_time_is_what_the_first_property_says(pairs, due_ms):
    assert asked_ms(pairs, NOW_MS, MOST_MS) == due_ms


@pytest.mark.parametrize("text", ["soon", "1.5", "²", "٣", "9" * 19, " 1", "--1", "-"])
def test_what_is_no_number_is_refused(text: str):
    with pytest.raises(BadTimeError, match=r"TIMER_DELAY_MS is .*; allowed: a whole"):
        asked_ms({"TIMER_DELAY_MS": text}, NOW_MS, MOST_MS)


@pytest.mark.parametrize("delay_ms", [f"{MOST_MS + 1}", "9" * 18])
def test_a_time_too_far_away_is_refused_in_rocketmqs_words(delay_ms: str):
    with pytest.raises(
        BadTimeError,
        match="should not be bigger than the max delay 1000000ms",
    ):
        asked_ms({"TIMER_DELAY_MS": delay_ms}, NOW_MS, MOST_MS)


def test_what_waits_is_read_as_it_was_written():
    pairs = {"UNIQ_KEY": "K", "TAGS": "t", "REAL_TOPIC": "before", "REAL_QID": "9"}
    text = pending_timers.message_text(5, "orders", 3, pairs, properties.dump(pairs))
    assert said(text) == (5, 3, b"orders+K")
    assert properties.parse(text) == {
        **pairs,
        "TIMER_OUT_MS": "5",
        "REAL_TOPIC": "orders",
        "REAL_QID": "3",
    }
    assert pending_timers.pairs_until(5, "orders", 3, pairs) == properties.parse(text)
    assert said(pending_timers.recall_text(5, "orders", "K")) == (
        5,
        RECALL,
        b"orders+K",
    )


def test_of_records_in_a_row_those_that_wait_are_found():
    text = pending_timers.message_text(5, "orders", 3, {}, "")
    rows = [record(text, 1), record("TAGS\x01t\x02", 2), record(text, 3), record("", 4)]
    found, last_at = pending_timers.waiting_in(b"".join(rows))
    assert found == [
        (offset, NOW_MS, len(rows[0]), 5, 3, b"orders+") for offset in (1, 3)
    ]
    assert last_at == sum(map(len, rows[:3]))


def test_what_is_put_off_counts_how_often():
    text = properties.dump({"UNIQ_KEY": "K", "DELAY": "1"}).encode()
    for times in range(4):
        text = pending_timers.put_off(text, "orders", 3, 10 + times)
        assert said(text) == (10 + times, 3, b"orders+K")
        pairs = properties.parse(text.decode())
        assert pairs.get("TIMER_ROLL_TIMES", "0") == str(times)
        assert pairs["DELAY"] == "1"
        assert text.count(b"TIMER_OUT_MS") == 1
