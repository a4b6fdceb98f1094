"""Accounts hold their rate, whoever takes, and let those go on first who came first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ropeway.gateway.config import QuotaConfig
from ropeway.gateway.node.accounts import MAX_DEBT_S, Account, Bucket
from tests.remoting import looped, until


def test_a_bucket_holds_a_second_and_may_be_overdrawn():
    bucket = Bucket(10, now_s=0.0)
    assert bucket.take(10, 0.0) == 0.0
    assert bucket.take(5, 0.0) == 0.5
    assert bucket.take(0, 0.4) == pytest.approx(0.1)
    assert bucket.take(0, 0.5) == pytest.approx(0.0)
    assert not bucket.is_full(1.0)
    assert bucket.is_full(99.0)
    assert bucket.take(11, 99.0) == pytest.approx(0.1)


def test_a_bucket_gives_single_tokens_while_it_has_them():
    bucket = Bucket(2, now_s=0.0, burst=3)
    assert [bucket.try_take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.try_take(0.5) for _ in range(2)] == [True, False]
    assert [bucket.try_take(60.0) for _ in range(4)] == [True, True, True, False]
    bucket.take(-1, 60.0)
    assert bucket.try_take(60.0)


def test_nobody_pays_for_longer_than_some_minutes():
    bucket = Bucket(1, now_s=0.0)
    assert bucket.take(10**9, 0.0) == MAX_DEBT_S
    assert bucket.take(0, MAX_DEBT_S) == 0.0


@pytest.mark.parametrize("slice_s", [0.001, 0.37, 5.0])
def test_whatever_the_pace_a_bucket_gives_its_rate(slice_s: float):
    bucket, now_s, taken = Bucket(100, now_s=0.0), 0.0, 0
    while now_s < 1000:
        wait_s = bucket.take(7, now_s)
        taken += 7
        now_s += max(wait_s, slice_s)
    most = min(100, 7 / slice_s)
    assert taken == pytest.approx(most * 1000, rel=0.02)


class Connection:
    """A connection that accounts hold back."""

    def __init__(self) -> None:
        self.held_by: set[Account] = set()

    def hold_back(self, account: Account) -> None:
        self.held_by.add(account)

    def go_on(self, account: Account) -> None:
        self.held_by.discard(account)


def stand_still(account: Account) -> None:
    """Let no time pass for an account, however long the machine takes."""
    now_s = account._loop.time()
    account._loop = SimpleNamespace(time=lambda: now_s)


@looped
async def test_connections_and_waiting_reads_share_one_timer():
    account, one = Account("a", QuotaConfig(bytes_per_s=100)), Connection()
    account.charge(one, 1, 150)
    assert (one.held_by, account.throttled) == ({account}, 1)
    due = account._due
    account.charge(one, 1, 1)
    reading = asyncio.ensure_future(account.wait_until_even(60))
    await asyncio.sleep(0)
    assert account._due is due
    assert account.throttled == 1
    await reading
    assert not one.held_by
    assert account._due is None


@looped
async def test_a_read_is_counted_before_it_is_known_and_then_as_it_was():
    account = Account("a", QuotaConfig(bytes_per_s=1000))
    stand_still(account)
    # Nobody knows what the first one brings: it has all.
    expected = account.begin_read(10_000)
    assert expected == 1000
    assert account._take(0, 1) > 0
    account.end_read(expected, 10)
    assert not account.overdrawn
    assert account.begin_read(10_000) == 10
    assert account.begin_read(4) == 4
    account.end_read(4, 0)
    account.end_read(10, 5000)
    assert account.overdrawn


@looped
async def test_who_waits_for_a_read_goes_on_when_that_brought_nothing():
    account = Account("a", QuotaConfig(bytes_per_s=1, requests_per_s=1))
    expected = account.begin_read(10_000)
    account.take(1, 100_000)
    waiting = asyncio.ensure_future(account.wait_until_even(60))
    await until(lambda: account._due is not None)
    account.take(-1, -100_000)
    account.end_read(expected, 0)
    await waiting
    assert account._due is None


@looped
async def test_reads_go_on_in_the_order_in_which_they_came():
    account, order = Account("a", QuotaConfig(requests_per_s=50)), []
    account.take(60, 0)

    async def read(number: int) -> None:
        await account.wait_until_even(60)
        account.take(2, 0)
        account.pass_on()
        order.append(number)

    await asyncio.gather(*(read(number) for number in range(10)))
    assert order == list(range(10))


@looped
async def test_who_is_let_go_on_and_gives_up_passes_it_on():
    account = Account("a", QuotaConfig(requests_per_s=1000))
    account.take(1500, 0)
    first, second = (
        asyncio.ensure_future(account.wait_until_even(60)) for _ in range(2)
    )
    await asyncio.sleep(0)
    waiting = next(iter(account._waiting))
    waiting.add_done_callback(lambda _: first.cancel())
    await second
    assert first.cancelled()
    assert not account.waited_for


@looped
async def test_who_waits_in_vain_leaves_no_timer_and_the_end_lets_all_go():
    account, one = Account("a", QuotaConfig(bytes_per_s=1)), Connection()
    account.take(0, 10_000)
    await account.wait_until_even(0.001)
    assert account._due is None
    waiting = asyncio.ensure_future(account.wait_until_even(60))
    account.charge(one, 0, 1)
    await asyncio.sleep(0)
    waiting.cancel()
    account.release()
    assert not one.held_by
    assert account._due is None
    account.charge(one, 0, 1)
    account.leave(one)
    assert account._due is None
