"""Which brokers run: announced, renewed, forgotten, and never two of one name."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ropeway.routing.api import Broker, NameTakenError, RouteError
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.routing.leases import LEASE_MS, RENEW_MS
from tests.contracts.routes import until
from tests.routing.test_embedded import sharing

if TYPE_CHECKING:
    from pathlib import Path


def broker(name: str, pid: int | None = None, incarnation: str = "") -> Broker:
    return Broker(
        name=name,
        node=name,
        cluster="c",
        addresses=("127.0.0.1:1",),
        pid=pid or os.getpid(),
        incarnation=incarnation,
    )


def test_processes_see_each_others_brokers_until_they_are_removed(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            for store, name in ((first, "a"), (second, "b")):
                await store.put_broker(broker(name))
            both = {"a": (broker("a"),), "b": (broker("b"),)}
            await until(lambda: first.brokers == second.brokers == both)
            await first.remove_broker("a", "a")
            assert first.brokers == {"b": (broker("b"),)}
            await until(lambda: second.brokers == {"b": (broker("b"),)})

    asyncio.run(main())


def test_a_broker_that_is_not_renewed_is_given_up_after_its_lease(tmp_path: Path):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            await first.put_broker(broker("a"))
            await second.put_broker(broker("b"))
            await until(lambda: len(first.brokers) == 2)
            await second.close()
            renewed = 0
            while "b" in first.brokers:
                clock[0] += RENEW_MS
                renewed += 1
                expected = clock[0]
                await until(lambda: first._leases._renewed_ms == expected)  # noqa: B023
            assert renewed * RENEW_MS == LEASE_MS
            assert first.brokers == {"a": (broker("a"),)}

    asyncio.run(main())


def test_where_nobody_can_write_nobody_is_given_up(tmp_path: Path):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            await first.put_broker(broker("a"))
            await second.put_broker(broker("b"))
            await until(lambda: len(first.brokers) == 2)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                clock[0] += 10 * LEASE_MS
                looks = 0
                real = first._leases.renew

                def renew() -> None:
                    nonlocal looks
                    looks += 1
                    real()

                first._leases.renew = renew
                await until(lambda: looks == 2)
                assert set(first.brokers) == {"a", "b"}

    asyncio.run(main())


def test_a_name_that_a_running_process_has_is_refused(tmp_path: Path):
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            await first.put_broker(broker("a", pid=os.getppid()))
            with pytest.raises(RouteError, match=f"process {os.getppid()} runs"):
                await second.put_broker(broker("a"))

    asyncio.run(main())


def test_a_name_of_a_process_that_has_died_is_free_at_once(tmp_path: Path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()

    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            await first.put_broker(broker("a", pid=dead.pid))
            await second.put_broker(broker("a"))
            assert second.brokers == {"a": (broker("a"),)}

    asyncio.run(main())


def test_a_lease_that_ran_out_is_free_whoever_has_the_process_number(tmp_path: Path):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            await first.put_broker(broker("a", pid=os.getppid()))
            await first.close()
            clock[0] += LEASE_MS
            await second.put_broker(broker("a"))
            assert second.brokers == {"a": (broker("a"),)}

    asyncio.run(main())


def test_a_store_of_one_process_keeps_its_broker_to_itself(tmp_path: Path):
    async def main():
        routes, other = (EmbeddedRoutes(tmp_path / "routes.db") for _ in range(2))
        await routes.put_broker(broker("a"))
        other.follow()
        assert (dict(routes.brokers), dict(other.brokers)) == (
            {"a": (broker("a"),)},
            {},
        )
        await routes.remove_broker("a", "a")
        assert routes.brokers == {}
        for one in (routes, other):
            await one.close()

    asyncio.run(main())


def test_what_was_renewed_before_the_machine_started_again_does_not_count(
    tmp_path: Path,
):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            await first.put_broker(broker("a"))
            await until(lambda: "a" in second.brokers)
            # As a crash leaves it: nothing was taken back.
            clock[0] = 1000
            assert "a" not in second.brokers
            await second.put_broker(broker("a", pid=1))

    asyncio.run(main())


def test_setting_the_clock_gives_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            for store, name in ((first, "a"), (second, "b")):
                await store.put_broker(broker(name))
            await until(lambda: len(first.brokers) == len(second.brokers) == 2)
            real = time.time_ns
            for leap_ms in (86_400_000, -86_400_000):
                monkeypatch.setattr(
                    time, "time_ns", lambda by=leap_ms: real() + by * 1_000_000
                )
                renewed = first._leases._renewed_ms
                while first._leases._renewed_ms == renewed:
                    assert len(first.brokers) == len(second.brokers) == 2
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_process_that_stood_still_hears_that_its_name_was_taken(tmp_path: Path):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            lost: list[str] = []
            first.watch_names(lost.append)
            renew, first._leases.renew = first._leases.renew, list
            await first.put_broker(broker("a", incarnation="1st"))
            clock[0] += LEASE_MS
            await second.put_broker(broker("a", incarnation="2nd"))
            first._leases.renew = renew
            await until(lambda: lost)
            assert "another process runs a broker named a" in lost[0]
            await first.remove_broker("a", "a", "1st")
            copy = {"a": (broker("a", incarnation="2nd"),)}
            await until(lambda: first.brokers == second.brokers == copy)

    asyncio.run(main())


def test_a_process_that_stood_still_goes_on_where_nobody_took_its_name(tmp_path: Path):
    clock = [1_000_000]

    async def main():
        path = tmp_path / "routes.db"
        async with sharing(path, now_ms=lambda: clock[0]) as (first, second):
            lost: list[str] = []
            first.watch_names(lost.append)
            await first.put_broker(broker("a", incarnation="1st"))
            await second.remove_broker("a", "a")
            clock[0] += 10 * LEASE_MS
            await until(lambda: "a" in second.brokers)
            assert not lost

    asyncio.run(main())


def test_processes_of_one_number_are_told_apart(tmp_path: Path):
    # As of two containers that have a file in common.
    async def main():
        async with sharing(tmp_path / "routes.db") as (first, second):
            await first.put_broker(broker("a", incarnation="1st"))
            with pytest.raises(NameTakenError, match="a broker named a"):
                await second.put_broker(broker("a", incarnation="2nd"))

    asyncio.run(main())
