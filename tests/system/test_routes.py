"""Routes on ZooKeeper while its servers and our nodes are killed and stopped."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from structlog.testing import capture_logs

from ropeway.routing.api import RouteStoreUnavailableError, Topic
from tests.contracts.routes import ORDERS, grow, node, put_topic, until
from tests.routing.zookeeper.helpers import QUICK, opened
from tests.system.process import stopped
from tests.system.zookeeper import Ensemble, ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ROOT = Path(__file__).parents[2]
MORE = Topic(name="more", read_queue_nums=1, write_queue_nums=1)
SESSION_S = 8.0
"""No place is lost where the machine stands still, but where it is to be."""
MOST_TICKS_S = 1.0
"""The servers end sessions at their ticks, a little after the time."""
LOADED_S = 40.0
"""What a loaded machine may be late."""
LONG_S = 30.0
"""The longest session that the servers give."""

USUAL = msgspec.structs.replace(QUICK, session_s=SESSION_S)
STEADY = msgspec.structs.replace(USUAL, wait_s=60.0)
"""For those who wait for a server to come back, on a loaded machine, too."""


@contextmanager
def holder(
    url: str, name: str, session_s: float = SESSION_S
) -> Iterator[subprocess.Popen[str]]:
    """A node of broker b in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.system.holder", url, name, str(session_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None
            # It may say that it waits, before.
            assert "announced\n" in iter(process.stdout.readline, "")
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str]) -> list[str]:
    """Whether it holds its place, and the nodes that it knows."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().split()


def nodes(routes) -> list[str]:
    return [one.node for one in routes.brokers.get("b", ())]


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    servers = Ensemble(tmp_path / "ensemble")
    servers.start()
    yield servers
    servers.kill()


def test_when_a_node_is_killed_the_next_takes_over_after_its_session(chroot: str):
    async def main():
        async with opened(chroot, 1, USUAL) as (routes,):
            with holder(chroot, "a") as first:
                await routes.put_broker(node("z", "b"))
                await until(lambda: nodes(routes) == ["a", "z"])
                first.kill()
                killed_s = time.monotonic()
                await until(lambda: nodes(routes) == ["z"])
                took_s = time.monotonic() - killed_s
                assert took_s < SESSION_S + MOST_TICKS_S + LOADED_S
                # What it was told last is not older than a ping of its session, and
                # than what the machine may have stood still just then.
                assert took_s > SESSION_S / 8

    asyncio.run(main())


def test_a_node_that_is_stopped_in_order_leaves_at_once(chroot: str):
    async def main():
        async with opened(chroot, 1, USUAL) as (routes,):
            with holder(chroot, "a", LONG_S) as first:
                await until(lambda: nodes(routes) == ["a"])
                first.stdin.close()
                closed_s = time.monotonic()
                await until(lambda: nodes(routes) == [])
                assert time.monotonic() - closed_s < LONG_S / 2

    asyncio.run(main())


def test_a_node_that_stood_still_knows_that_it_has_lost_its_place(chroot: str):
    async def main():
        async with opened(chroot, 1, USUAL) as (routes,):
            with holder(chroot, "a") as first, holder(chroot, "z"):
                await until(lambda: nodes(routes) == ["a", "z"])
                # Its own copy shows the other one a moment later.
                while await asyncio.to_thread(ask, first) != ["held", "a", "z"]:
                    pass
                with stopped(first.pid):
                    first.stdin.write("\n")
                    first.stdin.flush()
                    await until(lambda: nodes(routes) == ["z"])
                answer = await asyncio.to_thread(first.stdout.readline)
                assert answer.split()[0] == "lost"
                await until(lambda: nodes(routes) == ["z", "a"])
                # Its own copy shows it a moment after its session holds its place.
                while (now := await asyncio.to_thread(ask, first)) != [
                    *("held", "z", "a")
                ]:
                    assert "a" not in now[1:2], "master before it holds its place"

    asyncio.run(main())


def test_a_quick_restart_is_announced_when_its_old_session_has_ended(chroot: str):
    async def main():
        async with opened(chroot, 1, USUAL) as (routes,):
            await routes.put_broker(node("z", "b"))
            with holder(chroot, "a") as first:
                await until(lambda: nodes(routes) == ["z", "a"])
                first.kill()
                with holder(chroot, "a") as again:
                    await until(lambda: routes.brokers["b"][-1].pid == again.pid)
                    assert nodes(routes) == ["z", "a"]

    asyncio.run(main())


def test_a_server_that_is_killed_and_started_again_loses_nothing(tmp_path: Path):
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()

    async def main():
        async with opened(f"zookeeper://{server.address}/r", 2, STEADY) as (
            first,
            second,
        ):
            await put_topic(first, ORDERS)
            await first.put_broker(node("a", "b"))
            growing = asyncio.gather(grow(first, 60), grow(second, 60))
            await until(lambda: "count" in second.topics)
            server.kill()
            await asyncio.to_thread(server.start)
            await growing
            for one in (first, second):
                await until(lambda: one.topics["count"].read_queue_nums == 120)  # noqa: B023
                assert one.topics["orders"] == ORDERS
            await until(lambda: nodes(first) == nodes(second) == ["a"])

    try:
        asyncio.run(main())
    finally:
        server.stop()


@pytest.mark.slow
def test_when_leaders_are_killed_no_change_is_lost_and_none_made_twice(
    ensemble: Ensemble,
):
    async def main():
        done = 0

        async def growing(routes):
            nonlocal done
            while killing:
                await grow(routes, 1)
                done += 1

        async with opened(f"zookeeper://{ensemble.address}/r", 3, STEADY) as stores:
            await stores[0].put_broker(node("a", "b"))
            await stores[1].put_broker(node("z", "b"))
            killing = True
            async with asyncio.TaskGroup() as group:
                for one in stores[:2]:
                    group.create_task(growing(one))
                for _ in range(3):
                    before = done
                    await until(lambda: done > before + 20)  # noqa: B023
                    await asyncio.to_thread(ensemble.leader.kill)
                    before = done
                    await until(lambda: done > before + 5)  # noqa: B023
                    await asyncio.to_thread(ensemble.start)
                killing = False
            for one in stores:
                await until(lambda: one.topics["count"].read_queue_nums == done)  # noqa: B023
                await until(lambda: sorted(nodes(one)) == ["a", "z"])  # noqa: B023

    asyncio.run(main())


@pytest.mark.slow
def test_all_servers_may_be_away_for_longer_than_a_session(ensemble: Ensemble):
    async def main():
        async with opened(f"zookeeper://{ensemble.address}/r", 2, USUAL) as (
            first,
            second,
        ):
            await put_topic(first, ORDERS)
            await first.put_broker(node("a", "b"))
            await second.put_broker(node("z", "b"))
            await until(lambda: nodes(first) == nodes(second) == ["a", "z"])
            with capture_logs() as logs:

                def told(event: str) -> int:
                    return sum(one["event"] == event for one in logs)

                await asyncio.to_thread(ensemble.kill)
                late = asyncio.create_task(first.change_topic("late", lambda _: None))
                await until(lambda: first.held_until_s < time.monotonic())
                await asyncio.sleep(2 * SESSION_S)
                assert first.topics == second.topics == {"orders": ORDERS}
                assert nodes(first) == ["a", "z"]
                assert await first.find_topic("none") is None
                with pytest.raises(RouteStoreUnavailableError, match="answered within"):
                    await late
                assert len(logs) == told("routes may be out of date") == 2
                await asyncio.to_thread(ensemble.start)
                await until(lambda: first.held_until_s > time.monotonic())
                await put_topic(second, MORE)
                await until(lambda: set(first.topics) == {"orders", "more"})
                await until(lambda: nodes(first) == nodes(second))
                assert sorted(nodes(first)) == ["a", "z"]
                # Each says it once, unless servers that came back are lost again.
                await until(
                    lambda: (
                        told("routes are up to date again")
                        == told("routes may be out of date")
                    )
                )
            assert math.isfinite(first.held_until_s)

    asyncio.run(main())
