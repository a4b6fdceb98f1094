"""What is lost is opened again, with growing delays, until it is refused."""

import asyncio
import itertools

import pytest

from ropeway.storage.pulsar import backoff
from ropeway.storage.pulsar.backoff import (
    FIRST_DELAY_S,
    LARGEST_DELAY_S,
    Reopener,
    delays,
)
from ropeway.storage.pulsar.errors import (
    FencedError,
    ProducerBusyError,
    PulsarError,
    PulsarUnavailableError,
)
from tests.remoting import looped


class Opening:
    """Fails with each error in turn, and then succeeds."""

    def __init__(self, *errors: PulsarError) -> None:
        self.errors = list(errors)
        self.tries = 0
        self.lost: list[PulsarError] = []
        self.opened = asyncio.Event()
        self.reopener = Reopener(self.once, self.lose)

    async def once(self) -> None:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        self.opened.set()

    def lose(self, error: PulsarError) -> None:
        self.lost.append(error)
        self.opened.set()


def test_delays_double_up_to_a_limit_and_differ():
    many = [list(itertools.islice(delays(), 12)) for _ in range(50)]
    for number in range(12):
        most = min(FIRST_DELAY_S * 2**number, LARGEST_DELAY_S)
        column = [one[number] for one in many]
        assert most / 2 <= min(column) < max(column) <= most


@looped
async def test_a_first_opening_is_tried_again_after_passing_errors():
    opening = Opening(PulsarUnavailableError(), ProducerBusyError())
    await opening.reopener.first(10)
    assert opening.tries == 3


@looped
async def test_a_first_opening_gives_up_in_time_with_the_last_error():
    opening = Opening(*[ProducerBusyError("busy")] * 100)
    with pytest.raises(ProducerBusyError):
        await opening.reopener.first(0.1)
    assert 1 <= opening.tries < 10


@looped
async def test_a_first_opening_that_is_refused_is_not_tried_again():
    opening = Opening(FencedError())
    with pytest.raises(FencedError):
        await opening.reopener.first(10)
    assert opening.tries == 1


@looped
async def test_later_ones_are_tried_until_they_succeed_one_at_a_time():
    opening = Opening(PulsarUnavailableError(), PulsarUnavailableError())
    opening.reopener.again()
    opening.reopener.again()
    await opening.opened.wait()
    assert (opening.tries, opening.lost) == (3, [])


@looped
async def test_what_is_lost_as_soon_as_it_is_open_is_opened_ever_more_slowly():
    """A broker whose bookies are full closed a producer 1,300 times a second."""
    opening = Opening()
    began_s = asyncio.get_running_loop().time()
    for _ in range(6):
        opening.opened.clear()
        opening.reopener.again()
        await opening.opened.wait()
    # The first at once; behind it half of 1, 2, 4, 8 and 16 times, at least.
    assert asyncio.get_running_loop().time() - began_s >= 31 * FIRST_DELAY_S / 2
    assert opening.tries == 6


@looped
async def test_what_held_is_opened_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backoff, "LARGEST_DELAY_S", 0.01)
    opening = Opening()
    for tries in (1, 2, 3):
        opening.opened.clear()
        opening.reopener.again()
        # One turn of the loop begins the try: with a delay none would have been made.
        await asyncio.sleep(0)
        assert opening.tries == tries
        await asyncio.sleep(0.02)


@looped
async def test_a_refusal_is_told_once():
    error = FencedError()
    opening = Opening(PulsarUnavailableError(), error)
    opening.reopener.again()
    await opening.opened.wait()
    assert (opening.tries, opening.lost) == (2, [error])


@looped
async def test_what_is_stopped_tries_no_more():
    opening = Opening(*[PulsarUnavailableError()] * 100)
    opening.reopener.again()
    await opening.reopener.stop()
    tries = opening.tries
    await asyncio.sleep(3 * FIRST_DELAY_S)
    assert opening.tries == tries
