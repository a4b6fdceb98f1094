"""Which of a group's producers is asked, and what is said where there is none."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from ropeway.gateway.wire import host_port, message
from ropeway.gateway.wire.commands.clients import UnregisterClient
from tests.gateway.node.transactions.place import GIVEN_UP, GROUP, place
from tests.remoting import beat, connect, looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_group_without_producer_is_counted_too(tmp_path: Path):
    async with place(tmp_path, check_max=2) as one:
        await one.client.ask(UnregisterClient(client_id="me", producer_group=GROUP))
        await one.send_half(b"x")
        for _ in range(3):
            await one.clock.advance(31_000)
        await one.written(1)
        assert one.asked == []
        assert one.partition(GIVEN_UP).end == 1


@looped
async def test_producers_are_asked_in_turn(tmp_path: Path):
    async with place(tmp_path) as one, connect(one.listener) as other:
        await beat(other, "another", producers=(GROUP,))
        for number in range(6):
            await one.send_half(b"%d" % number)
        await one.clock.advance(7000)
        assert len(one.links) == 6
        assert len(set(one.links)) == 2
        assert one.links[:2] * 3 == one.links


@looped
async def test_who_sent_a_message_is_asked_about_it_first(tmp_path: Path):
    async with place(tmp_path) as one, connect(one.listener) as other:
        await beat(other, "another", producers=(GROUP,))
        for member in one.app.node.clients.producers(GROUP):
            host, port = host_port.split(member.link.address)
            for _ in range(2):
                await one.send_half(b"x", born_host=message.pack_host(host, port))
        await one.clock.advance(7000)
        assert len(one.links) == 4
        for link, shown in zip(one.links, one.shown, strict=True):
            assert link.address == host_port.join(*shown.born_host)


@looped
async def test_others_have_their_turn_while_many_producers_are_looked_through(
    tmp_path: Path,
):
    """A client may be a producer of any group, so one may hold up nobody."""
    turn = 0
    looked_at: Counter[int] = Counter()

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def permitted(*_: object) -> bool:
        looked_at[turn] += 1
        return True

    async with place(tmp_path) as one:
        member = one.app.node.clients.producers(GROUP)[0]
        checks = one.service._checks
        checks._permitted = permitted
        checks._clients = SimpleNamespace(producers=lambda _: [member] * 1000)
        beside = asyncio.ensure_future(others())
        await one.send_half(b"x")
        await one.clock.advance(7000)
        beside.cancel()
        assert looked_at.total() == 1000
        assert max(looked_at.values()) <= 64
        assert len(one.asked) == 1


@looped
async def test_groups_without_producer_are_told_of_now_and_then(tmp_path: Path):
    async with place(tmp_path, check_interval_ms=8000) as one:
        await one.client.ask(UnregisterClient(client_id="me", producer_group=GROUP))
        told: list[int] = []
        for number in range(2):
            await one.send_half(b"%d" % number)
        for pause_ms in (7000, 10_000, 10_000, 10_000, 10_000):
            with capture_logs() as logs:
                await one.clock.advance(pause_ms)
            lines = [each for each in logs if "no producer" in each["event"]]
            assert {each["group"] for each in lines} <= {GROUP}
            told.append(sum(each["questions"] for each in lines))
        # Each time there are two to ask; it is told at first, and after half a minute.
        assert told == [2, 0, 0, 6, 0]
