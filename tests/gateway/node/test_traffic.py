"""Counts of messages written and read, in minutes, hours and days."""

import asyncio
import time
from types import SimpleNamespace

from ropeway.gateway.node import traffic as traffic_module
from ropeway.gateway.node.traffic import (
    BROKER_GET_NUMS,
    BROKER_PUT_NUMS,
    Period,
    PulledOffsets,
    Traffic,
)
from ropeway.storage.api import NotReadyError
from tests.remoting import looped

KEY = ("TOPIC_PUT_NUMS", "orders")
NOON_MS = int(time.mktime((2024, 5, 1, 12, 0, 0, 0, 0, -1))) * 1000


class Clock:
    """A clock that is set."""

    ms = NOON_MS

    def __call__(self) -> int:
        return self.ms


class Topic:
    """A topic with one queue, which is opened later where it has no end."""

    def __init__(self, name: str, end: int | None) -> None:
        self.name = name
        self.end = end
        self.partitions = [self]
        self.appended_bytes = 0

    @property
    def end(self) -> int:
        if self._end is None:
            raise NotReadyError(self.name)
        return self._end

    @property
    def last_end(self) -> int:
        return self.end

    @end.setter
    def end(self, end: int | None) -> None:
        self._end = end


class Topics(list):
    """The topics of a node."""

    def watch_deleted(self, deleted) -> None:
        self.deleted = deleted


def test_a_period_forgets_what_is_older():
    period = Period(slice_ms=10, slices=3, started_ms=0)
    for now_ms in (5, 15, 25):
        period.add(KEY, 1, now_ms)
    assert period.sum(KEY, 25) == 3
    assert period.sum(KEY, 25, slices=2) == 2
    assert period.sum(KEY, 35) == 2
    assert period.sum(KEY, 45) == 1
    assert period.sum(KEY, 55) == 0


def test_a_rate_is_over_the_time_since_counting_began():
    period = Period(slice_ms=1000, slices=60, started_ms=100_000)
    period.add(KEY, 30, 101_000)
    assert period.rate(KEY, 103_000) == 10
    assert period.rate(KEY, 160_000) == 30 * 1000 / 59_000


def test_only_what_was_written_since_the_take_over_counts():
    @looped
    async def run() -> None:
        old, opening = Topic("old", 100), Topic("opening", None)
        topics, clock = Topics([old, opening]), Clock()
        traffic = Traffic("cluster", topics, clock)
        await traffic.take_over()
        try:
            old.end, opening.end = 105, 50
            topics.append(Topic("new", 3))
            for topic in topics:
                traffic.look_at(topic)
            assert traffic.written.now == 8
            opening.end = 51
            traffic.look_at(opening)
            assert traffic.written.now == 9
            assert traffic.day.sum(("TOPIC_PUT_NUMS", "opening"), clock.ms) == 1
        finally:
            await traffic.give_up()

    run()


def test_a_topic_that_is_made_anew_counts_from_its_first_message():
    topics = Topics()
    traffic = Traffic("cluster", topics, Clock())
    traffic.look_at(Topic("orders", 10))
    traffic.look_at(Topic("orders", 4))
    assert traffic.written.now == 14
    topics.deleted(SimpleNamespace(name="orders"))
    traffic.look_at(Topic("orders", 10))
    assert traffic.written.now == 24


def test_what_groups_are_given_counts_by_group():
    clock = Clock()
    traffic = Traffic("cluster", Topics(), clock)
    traffic.pulled["orders"]["a"] += 3
    traffic.pulled["orders"]["b"] += 1
    traffic.pulled["orders"]["a"] += 2
    traffic.look_at(Topic("orders", 0))
    assert traffic.minute.sum(("GROUP_GET_NUMS", "orders@a"), clock.ms) == 5
    assert traffic.minute.sum(("GROUP_GET_NUMS", "orders@b"), clock.ms) == 1
    assert traffic.read.now == 6


def test_what_groups_are_given_is_known_at_once_and_until_the_topic_goes():
    topics = Topics()
    traffic = Traffic("cluster", topics, Clock())
    traffic.pulled["orders"]["a"] += 3
    assert traffic.given() == [("orders", "a", 3)]
    traffic.look_at(Topic("orders", 10))
    traffic.pulled["orders"]["a"] += 2
    assert traffic.given() == [("orders", "a", 5)]
    topics.deleted(SimpleNamespace(name="orders"))
    assert traffic.given() == []


def test_the_totals_of_two_mornings_are_kept():
    clock = Clock()
    traffic = Traffic("cluster", Topics(), clock)
    topic = Topic("orders", 0)
    for end in (5, 7, 10):
        topic.end = end
        traffic.look_at(topic)
        clock.ms += 24 * 3_600_000
    # What is seen after midnight belongs to the new day.
    assert traffic.written == (10, 7, 5)


def test_the_brokers_rates_are_of_late_of_a_minute_and_of_ten():
    clock = Clock()
    traffic = Traffic("cluster", Topics(), clock)
    clock.ms += 20_000
    traffic.look_at(Topic("orders", 200))
    late, minute, ten = traffic.rates(BROKER_PUT_NUMS)
    assert late > minute == ten == 10
    assert traffic.rates(BROKER_GET_NUMS) == (0, 0, 0)


@looped
async def test_a_take_over_and_a_look_let_others_have_turns(monkeypatch):
    """With 10,000 topics on Pulsar the loop stood still for a fifth of a second."""
    monkeypatch.setattr(traffic_module, "_TOPICS_AT_ONCE", 2)
    topics = Topics(Topic(f"t{number}", 3) for number in range(6))
    traffic = Traffic("c", topics, Clock())
    for work in (traffic.take_over, traffic.look):
        doing = asyncio.ensure_future(work())
        turns = 0
        while not doing.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 3
    assert traffic.written.now == 0
    await traffic.give_up()


def test_the_last_pull_counts_also_where_it_goes_back():
    pulled = PulledOffsets()
    assert pulled.get("g", "orders", 0) == 0
    pulled.of_topics["orders"]["g", 0] = 9
    pulled.of_topics["orders"]["g", 0] = 4
    assert pulled.get("g", "orders", 0) == 4
    assert pulled.get("g", "orders", 1) == pulled.get("h", "orders", 0) == 0


def test_groups_and_topics_are_forgotten():
    pulled = PulledOffsets()
    pairs = [("g", "a"), ("g", "b"), ("h", "a"), ("h", "b")]

    def fill() -> None:
        for group, topic in pairs:
            pulled.of_topics[topic][group, 1] = 5

    def known() -> list[tuple[str, str]]:
        return [pair for pair in pairs if pulled.get(*pair, 1)]

    fill()
    pulled.forget(group="g", topic="a")
    assert known() == pairs[1:]
    pulled.forget(group="h")
    assert known() == [("g", "b")]
    fill()
    pulled.forget(topic="a")
    assert known() == [("g", "b"), ("h", "b")]
    pulled.forget(topic="never seen")
