"""A node leads while it is chosen and certain, and gives up whole."""

from __future__ import annotations

import asyncio
import math
import time

import msgspec
import pytest

from ropeway.gateway.node import leadership as module
from ropeway.gateway.node.leadership import Leadership, NoLeaderError
from ropeway.routing.api import Broker, RouteStoreUnavailableError
from ropeway.storage.api import LogUnavailableError
from tests.remoting import looped, until


def node(name: str) -> Broker:
    return Broker(
        name="broker-0", node=name, cluster="c", addresses=("127.0.0.1:1",), pid=1
    )


class Routes:
    """Who is to lead, as the test says."""

    def __init__(self, *names: str) -> None:
        self.brokers = {}
        self._watchers = []
        self.fails = False
        self.choose(*names)

    def watch_brokers(self, changed) -> None:
        self._watchers.append(changed)

    def choose(self, *names: str) -> None:
        self.brokers = {"broker-0": tuple(map(node, names))} if names else {}
        for changed in self._watchers:
            changed("broker-0")

    async def put_broker(self, broker: Broker) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise RouteStoreUnavailableError("no server answers")
        nodes = self.brokers["broker-0"]
        others = [one.node for one in nodes if one.node != broker.node]
        self.choose(*others, broker.node)


class Duty:
    """A duty that writes down what is asked of it."""

    def __init__(self, name: str, book: list[str]) -> None:
        self._name = name
        self._book = book
        self.fails: Exception | None = None
        self.fails_to_end = False

    async def take_over(self) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise self.fails
        self._book.append(f"+{self._name}")

    async def give_up(self) -> None:
        await asyncio.sleep(0)
        self._book.append(f"-{self._name}")
        if self.fails_to_end:
            raise LogUnavailableError("another node was faster")


class Contest:
    """A contender `us` with two duties."""

    def __init__(self, *chosen: str, until_s: float = math.inf) -> None:
        self.book: list[str] = []
        self.first, self.second = Duty("a", self.book), Duty("b", self.book)
        self.routes = Routes(*chosen)
        self.until_s = until_s
        self.leadership = Leadership(
            "broker-0",
            "us",
            self.routes,
            [self.first, self.second],
            [lambda: self.until_s],
        )
        self.leadership.contest()


@looped
async def test_who_is_chosen_takes_over_in_order_and_gives_up_in_reverse():
    contest = Contest("them", "us")
    leadership = contest.leadership
    assert (await leadership.settle()).node == "them"
    assert contest.book == []
    contest.routes.choose("us")
    assert await leadership.settle() is None
    assert contest.book == ["+a", "+b"]
    contest.routes.choose("them")
    await until(lambda: len(contest.book) == 4)
    assert contest.book == ["+a", "+b", "-b", "-a"]
    assert (await leadership.settle()).node == "them"
    await leadership.close()


@looped
async def test_who_leads_goes_on_where_routes_have_lost_sight_of_all_nodes():
    contest = Contest("us")
    leadership = contest.leadership
    await leadership.settle()
    contest.routes.choose()
    await asyncio.sleep(0.01)
    assert leadership.leads
    contest.routes.choose("us")
    assert await leadership.settle() is None
    assert contest.book == ["+a", "+b"]
    await leadership.close()


@pytest.mark.parametrize("error", [LogUnavailableError("not now"), KeyError("ours")])
@looped
async def test_a_duty_that_fails_puts_the_take_over_off(monkeypatch, error):
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    contest = Contest()
    contest.second.fails = error
    contest.routes.choose("us")
    await until(lambda: len(contest.book) >= 6)
    assert contest.book[:6] == ["+a", "-b", "-a"] * 2
    assert not contest.leadership.leads
    contest.second.fails = None
    assert await contest.leadership.settle() is None
    await contest.leadership.close()
    assert contest.book[-4:] == ["+a", "+b", "-b", "-a"]


@looped
async def test_who_gives_up_in_disorder_gives_all_up_and_leads_again():
    """It never led again: what it did first at its end was its end."""
    contest = Contest("us")
    leadership = contest.leadership
    await leadership.settle()
    contest.second.fails_to_end = True
    contest.routes.choose("them")
    await until(lambda: contest.book[2:] == ["-b", "-a"])
    contest.routes.choose("us")
    assert await leadership.settle() is None
    assert contest.book[4:] == ["+a", "+b"]
    contest.routes.choose("us", "them")
    with pytest.raises(LogUnavailableError, match="faster"):
        await leadership.step_back()
    assert contest.book[6:8] == ["-b", "-a"]
    assert await leadership.settle() is None
    await leadership.close()
    assert contest.book[-2:] == ["-b", "-a"]


@pytest.mark.rule("node.md", "In doubt it serves nobody.")
@looped
async def test_nobody_leads_in_doubt_and_leads_on_after_it():
    contest = Contest("us")
    leadership = contest.leadership
    assert await leadership.settle() is None
    contest.until_s = time.monotonic() - 1
    leadership.check(time.monotonic())
    assert leadership.leads, "what it was told last still holds"
    leadership.certain_until_s = contest.until_s
    assert not leadership.is_certain()
    contest.until_s = math.inf
    assert await leadership.settle() is None
    assert contest.book == ["+a", "+b"], "no take-over for a doubt"
    await leadership.close()


@looped
async def test_who_is_deposed_gives_up_at_once_and_takes_its_place_back(monkeypatch):
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    contest = Contest("us")
    leadership = contest.leadership
    await leadership.settle()
    leadership.deposed()
    assert not leadership.leads
    assert await leadership.settle() is None
    assert contest.book == ["+a", "+b", "-b", "-a", "+a", "+b"]
    await leadership.close()


@looped
async def test_requests_wait_for_a_leader_and_not_for_ever(monkeypatch):
    monkeypatch.setattr(module, "SETTLE_S", 0.05)
    contest = Contest()
    with pytest.raises(NoLeaderError, match="broker-0 has no master now"):
        await contest.leadership.settle()
    await contest.leadership.close()


@looped
async def test_who_is_not_announced_yet_sends_on_to_another_and_not_to_the_dead():
    starting = Leadership("broker-0", "us", Routes("them"), [])
    assert (await starting.settle()).node == "them"
    starting = Leadership("broker-0", "us", Routes("us"), [])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await starting.settle()


@looped
async def test_requests_wait_for_nobody_where_the_last_node_ends(monkeypatch):
    monkeypatch.setattr(module, "SETTLE_S", 240.0)
    contest = Contest("us")
    leadership = contest.leadership
    assert await leadership.settle() is None
    await leadership.close()
    asked = asyncio.create_task(leadership.settle())
    await asyncio.sleep(0)
    assert not asked.done(), "another node may be known by the time we are forgotten"
    began_s = time.monotonic()
    contest.routes.choose()
    with pytest.raises(NoLeaderError, match="broker-0 has no master now"):
        await asked
    assert time.monotonic() - began_s < module.SETTLE_S / 2


@looped
async def test_who_is_alone_leads_without_being_chosen():
    book: list[str] = []
    leadership = Leadership("broker-0", "us", Routes(), [Duty("a", book)])
    await leadership.lead()
    leadership.check(time.monotonic())
    assert leadership.leads
    assert await leadership.settle() is None
    await leadership.close()
    assert book == ["+a", "-a"]


@looped
async def test_who_is_expected_to_lead_waits_for_the_routes_to_say_so(monkeypatch):
    monkeypatch.setattr(module, "_HEARD_S", 240.0)
    contest = Contest("them", "us")
    leadership = contest.leadership
    asked = asyncio.create_task(leadership.settle(expected=True))
    await asyncio.sleep(0.01)
    assert not asked.done()
    contest.routes.choose("us", "them")
    assert await asked is None
    monkeypatch.setattr(module, "_HEARD_S", 0.01)
    contest.routes.choose("them", "us")
    await until(lambda: not leadership.leads)
    assert (await leadership.settle(expected=True)).node == "them"
    await leadership.close()


@pytest.mark.parametrize("ends", [False, True])
@looped
async def test_who_has_led_does_not_wait_for_routes_that_it_knows(monkeypatch, ends):
    monkeypatch.setattr(module, "_HEARD_S", 3600.0)
    monkeypatch.setattr(module, "_TOLD_S", 0.01)
    contest = Contest("us", "them")
    leadership = contest.leadership
    await leadership.settle()
    if ends:
        await leadership.close()
    contest.routes.choose("them")
    await until(lambda: len(contest.book) == 4)
    async with asyncio.timeout(60):
        assert (await leadership.settle(expected=True)).node == "them"
    await leadership.close()


@looped
async def test_who_ends_does_not_wait_from_its_first_step_on(monkeypatch):
    """A send that came while it began to end was refused after 2 s only."""
    monkeypatch.setattr(module, "_HEARD_S", 3600.0)
    monkeypatch.setattr(module, "_TOLD_S", 0.01)
    contest = Contest("us", "them")
    await contest.leadership.settle()
    closing = asyncio.ensure_future(contest.leadership.close())
    await asyncio.sleep(0)
    asked = asyncio.ensure_future(contest.leadership.settle(expected=True))
    await asyncio.sleep(0)
    contest.routes.choose("them")
    async with asyncio.timeout(60):
        assert (await asked).node == "them"
        await closing


@pytest.fixture
def quick_to_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALE_S", 0.01)
    # Only the tests' own calls find that it stood still.
    monkeypatch.setattr(module, "BEAT_S", 60.0)


@pytest.mark.rule("node.md", "Stale sends die")
@pytest.mark.usefixtures("quick_to_catch_up")
@pytest.mark.parametrize("chosen", [("us",), ("them", "us")])
@looped
async def test_what_comes_after_a_long_stop_is_stale_until_it_has_been_read(chosen):
    contest = Contest(*chosen, until_s=time.monotonic() + 5)
    leadership = contest.leadership
    await leadership.settle()
    assert not leadership.is_stale
    went_on_s = time.monotonic() + 60
    contest.until_s = math.inf  # another look vouches again, for the time from now on
    leadership.check(went_on_s)
    assert (leadership.is_stale, leadership.leads) == (True, False)
    assert leadership.went_on_s == went_on_s
    await until(lambda: not leadership.is_stale)
    led_by = await leadership.settle()
    assert (led_by is None) == (chosen == ("us",))
    await leadership.close()


@pytest.mark.usefixtures("quick_to_catch_up")
@looped
async def test_nothing_is_stale_where_nobody_can_have_taken_over():
    contest = Contest("us")
    leadership = contest.leadership
    await leadership.settle()
    leadership.check(time.monotonic() + 60)
    assert (leadership.is_stale, leadership.leads) == (False, True)
    await leadership.close()


@pytest.mark.usefixtures("quick_to_catch_up")
@looped
async def test_a_loop_that_is_late_for_less_than_a_second_was_busy():
    contest = Contest("us", until_s=time.monotonic() + 5)
    leadership = contest.leadership
    await leadership.settle()
    contest.until_s = -math.inf
    leadership.certain_until_s = leadership._vouched_until_s = -math.inf
    leadership.check(leadership.late_s)
    assert (leadership.is_stale, leadership.leads) == (False, False)
    await leadership.close()


@pytest.mark.rule("routing.md", "A name is one process's")
@looped
async def test_another_process_of_our_name_leads_elsewhere():
    contest = Contest()
    leadership = contest.leadership
    other = msgspec.structs.replace(node("us"), incarnation="another")
    contest.routes.brokers = {"broker-0": (other,)}
    assert leadership.is_led_elsewhere()
    assert await leadership.settle() == other
    assert contest.book == []
    await leadership.close()
