"""Appends that have not come back: in order, and each answered once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.storage.api import LogError, OutcomeUnknownError
from ropeway.storage.pulsar.appender import Traffic
from ropeway.storage.pulsar.pending_appends import PendingAppends

if TYPE_CHECKING:
    from ropeway.storage.api import Done


class Way(NamedTuple):
    """Appends on their way, what all of them weigh, and what was answered."""

    pending: PendingAppends
    traffic: Traffic
    told: list[tuple[int, int, LogError | None]]

    def add(self, *numbers: int, records: int = 1) -> None:
        for number in numbers:
            self.pending.add(number, records, 100, self.done(number))

    def done(self, number: int) -> Done:
        return lambda offset, error: self.told.append((number, offset, error))


@pytest.fixture
def way() -> Way:
    traffic = Traffic(1000)
    append_path: Any = "way in"
    return Way(PendingAppends(append_path, "orders-0", traffic), traffic, [])


def test_what_comes_is_done_with_its_offset_and_weighs_nothing_more(way: Way) -> None:
    way.add(0, 1, records=3)
    assert (way.traffic.waiting_bytes, way.pending.records) == (200, 6)
    assert list(way.traffic.appenders) == ["way in"]
    way.pending.came(0, 17)
    assert way.told == [(0, 17, None)]
    assert (way.traffic.waiting_bytes, way.pending.records) == (100, 3)
    way.pending.came(1, 25)
    assert way.told == [(0, 17, None), (1, 25, None)]
    assert not way.pending
    assert not way.traffic.appenders
    assert way.traffic.waiting_bytes == 0


def test_what_was_passed_over_is_of_unknown_outcome(way: Way) -> None:
    way.add(0, 1)
    way.pending.came(1, 5)
    [(_, offset, error), second] = way.told
    assert offset == -1
    assert isinstance(error, OutcomeUnknownError)
    assert second == (1, 5, None)


def test_given_up_is_answered_once_and_may_come_yet(way: Way) -> None:
    way.add(0, 1)
    way.pending.give_up("late")
    assert [one[:2] for one in way.told] == [(0, -1), (1, -1)]
    assert {str(one[2]) for one in way.told} == {"orders-0: late"}
    assert way.traffic.waiting_bytes == 0
    assert way.pending
    way.pending.came(0, 3)
    assert way.traffic.appenders
    way.pending.came(1, 4)
    assert len(way.told) == 2
    assert not way.pending
    assert (way.traffic.waiting_bytes, way.pending.records) == (0, 0)


def test_what_failed_never_comes(way: Way) -> None:
    way.add(0, 1)
    way.pending.fail("gone")
    assert [one[1] for one in way.told] == [-1, -1]
    assert not way.pending
    assert way.pending.records == 0
    assert not way.traffic.appenders


def test_one_callers_fault_does_not_reach_others(way: Way) -> None:
    def faulty(_offset: int, _error: LogError | None) -> None:
        raise RuntimeError("a fault")

    way.pending.add(0, 1, 100, faulty)
    way.add(1)
    way.pending.came(0, 0)
    way.pending.came(1, 1)
    assert way.told == [(1, 1, None)]


def test_who_waits_is_woken_when_all_before_has_come(way: Way) -> None:
    async def test() -> None:
        way.add(0, 1)
        early = asyncio.ensure_future(way.pending.drained())
        await asyncio.sleep(0)
        way.add(2)
        late = asyncio.ensure_future(way.pending.drained())
        await asyncio.sleep(0)
        way.pending.came(1, 1)
        await early
        assert not late.done()
        way.pending.came(2, 2)
        await late
        await way.pending.drained()

    asyncio.run(test())


def test_who_waits_hears_that_it_will_never_come(way: Way) -> None:
    async def test() -> None:
        way.add(0)
        waiting = asyncio.ensure_future(way.pending.drained())
        await asyncio.sleep(0)
        way.pending.fail("gone")
        with pytest.raises(OutcomeUnknownError, match="gone"):
            await waiting

    asyncio.run(test())


def test_what_comes_behind_what_was_given_up_is_done(way: Way) -> None:
    way.add(0, 1)
    way.pending.give_up("late")
    way.add(2, 3)
    way.pending.came(3, 9)
    assert [one[:2] for one in way.told[2:]] == [(2, -1), (3, 9)]
    assert not way.pending
    assert way.traffic.waiting_bytes == 0
    assert not way.traffic.appenders


def test_pulsar_is_heard_of_when_something_comes(way: Way) -> None:
    way.add(0, 1)
    sent_at = way.traffic.heard_at
    way.pending.came(0, 1)
    assert way.traffic.heard_at > sent_at
