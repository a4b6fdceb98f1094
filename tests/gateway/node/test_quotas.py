"""Quotas of topics and groups are kept for all nodes, and reads wait for theirs."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ropeway.gateway.node.accounts import Account
from ropeway.gateway.node.quotas import GROUP, NAMESPACE, TOPIC, Key, Quotas
from ropeway.gateway.wire.commands.quotas import Quota
from ropeway.routing.embedded import EmbeddedRoutes
from tests.remoting import looped, two_running, until

ORDERS, READERS = Key(TOPIC, "orders"), Key(GROUP, "readers")


@pytest.fixture
def routes(tmp_path):
    return EmbeddedRoutes(tmp_path / "routes.db")


def setting(**limits: int):
    return lambda old: msgspec.structs.replace(old, **limits)


async def put(quotas: Quotas, key: Key, **limits: int) -> None:
    await quotas.change(key, setting(**limits))


@looped
async def test_what_is_limited_is_counted_and_nothing_else(routes):
    quotas = Quotas(routes, 100, lambda: 0)
    assert not quotas.sends
    assert not quotas.limits_reads
    await put(quotas, ORDERS, send_bytes_per_s=10)
    assert quotas.sends.keys() == {"orders"}
    assert not quotas.limits_reads
    await put(quotas, READERS, cold_bytes_per_s=10)
    assert quotas.limits_reads
    assert quotas.limits("readers", "other")
    assert not quotas.limits("others", "orders")
    assert quotas.limits_cold("readers")
    await put(quotas, ORDERS, read_requests_per_s=1)
    assert quotas.limits("others", "orders")
    assert not quotas.limits_cold("others")
    for key in (ORDERS, READERS):
        await quotas.change(key, lambda _: None)
    assert not quotas.sends
    assert not quotas.limits_reads
    assert NAMESPACE not in {space for space, _ in routes.settings}
    await routes.close()


@looped
async def test_a_changed_limit_counts_at_once_and_others_keep_their_account(routes):
    quotas = Quotas(routes, 100, lambda: 0)
    await put(quotas, ORDERS, send_bytes_per_s=10)
    await put(quotas, READERS, read_bytes_per_s=10)
    before = quotas.sends["orders"]
    (reads,) = quotas._of("readers", "x", cold=True)
    reads.take(0, 10_000)
    waiting = asyncio.ensure_future(quotas.acquire("readers", "x", 1, 60, cold=False))
    await asyncio.sleep(0)
    assert not waiting.done()
    # It has a new account then, with nothing taken.
    await put(quotas, READERS, read_bytes_per_s=1_000_000)
    permit = await waiting
    with permit:
        pass
    assert quotas.sends["orders"] is before
    await routes.close()


@looped
async def test_a_read_waits_for_all_its_accounts_and_takes_of_none_until_then(routes):
    quotas = Quotas(routes, 100, lambda: 0)
    await put(quotas, ORDERS, read_bytes_per_s=1_000_000)
    await put(quotas, READERS, read_bytes_per_s=1_000)
    of_topic, of_group = quotas._of("readers", "orders", cold=False)
    of_group.take(0, 2_000)
    waiting = asyncio.ensure_future(
        quotas.acquire("readers", "orders", 4_000, 60, cold=False)
    )
    await asyncio.sleep(0)
    assert of_topic._take(0, 1) == 0
    other = await quotas.acquire("others", "orders", 4_000, 0, cold=False)
    assert other is not None
    with other:
        other.size_bytes = 10
    permit = await waiting
    with permit:
        permit.size_bytes = 500
    assert (of_group.throttled, of_topic.throttled) == (1, 0)
    assert quotas.throttled()[READERS] == {"read": 1}
    of_group.take(0, 100_000)
    assert await quotas.acquire("readers", "orders", 1, 0, cold=False) is None
    assert quotas.throttled()[READERS] == {"read": 2}
    await routes.close()


@looped
async def test_cold_reads_are_told_for_a_minute(routes):
    clock = [1_000_000]
    quotas = Quotas(routes, 100, lambda: clock[0])
    await put(quotas, READERS, cold_bytes_per_s=1_000_000)

    async def read(size: int, *, cold: bool) -> None:
        permit = await quotas.acquire("readers", "orders", size, 0, cold=cold)
        with permit:
            permit.size_bytes = size

    await read(10, cold=False)
    assert not quotas.cold_reads
    await read(10, cold=True)
    clock[0] += 1
    await read(5, cold=True)
    assert quotas.cold_reads["readers"] == (1_000_000, 1_000_001, 15)
    clock[0] += 5_000
    await read(7, cold=True)
    assert quotas.cold_reads["readers"] == (1_000_000, 1_005_001, 7)
    await quotas.change(READERS, lambda _: None)
    assert not quotas.cold_reads
    await routes.close()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("topic/orders", "{"),
        ("topic/orders", '{"sendBytesPerS": -1}'),
        ("topic/orders", "[]"),
        ("nothing", '{"sendBytesPerS": 1}'),
        ("group/readers", '{"sendBytesPerS": 1}'),
        ("topic/orders", '{"coldBytesPerS": 1}'),
    ],
)
@looped
async def test_what_somebody_wrote_past_the_commands_stops_nobody(routes, key, text):
    await routes.put_setting(NAMESPACE, key, text)
    quotas = Quotas(routes, 100, lambda: 0)
    assert not quotas.sends
    assert not quotas.limits_reads
    await put(quotas, ORDERS, send_bytes_per_s=1)
    assert isinstance(quotas.sends["orders"], Account)
    await routes.close()


@looped
async def test_all_nodes_have_a_quota(tmp_path):
    async with two_running(tmp_path) as ((near, _), (far, _other)):
        await put(near.node.quotas, ORDERS, send_bytes_per_s=10)
        assert near.node.quotas.kept == {ORDERS: Quota(send_bytes_per_s=10)}
        await until(lambda: far.node.quotas.kept)
        assert far.node.quotas.kept == near.node.quotas.kept
        # Each counts by itself.
        accounts = (one.node.quotas.sends["orders"] for one in (near, far))
        assert len(set(accounts)) == 2


@looped
async def test_reads_of_a_group_and_a_topic_that_are_both_late_all_go_on(routes):
    quotas, order = Quotas(routes, 1000, lambda: 0), []
    await put(quotas, ORDERS, read_requests_per_s=100)
    await put(quotas, READERS, read_requests_per_s=90)

    async def read(number: int, group: str, topic: str) -> None:
        permit = await quotas.acquire(group, topic, 1, 60, cold=False)
        with permit:
            permit.size_bytes = 1
        order.append((number, group, topic))

    reads = [
        read(number, *pair)
        for number in range(100)
        for pair in (("readers", "orders"), ("readers", "x"), ("others", "orders"))
    ]
    await asyncio.gather(*reads)
    for pair in (("readers", "x"), ("others", "orders")):
        numbers = [number for number, *of in order if tuple(of) == pair]
        assert numbers == sorted(numbers)
    assert quotas.waiting == 0
    assert not any(one.waited_for for one in quotas._accounts.values())
    await routes.close()


@looped
async def test_so_many_reads_wait_and_no_more(routes):
    quotas = Quotas(routes, 2, lambda: 0)
    await put(quotas, READERS, read_bytes_per_s=1)
    quotas._of("readers", "x", cold=False)[0].take(0, 100)
    waiting = [
        asyncio.ensure_future(quotas.acquire("readers", "x", 1, 60, cold=False))
        for _ in range(2)
    ]
    await until(lambda: quotas.waiting == 2)
    third = asyncio.ensure_future(quotas.acquire("readers", "x", 1, 3600, cold=False))
    await until(lambda: third.done() or quotas.waiting > 2)
    assert third.done()
    assert third.result() is None
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert quotas.waiting == 0
    await routes.close()
