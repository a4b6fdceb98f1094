"""The file of embedded routes: refused, brought up to date, locked, and killed at."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ropeway.routing.api import RouteError, RouteStoreUnavailableError
from ropeway.routing.database import SCHEMA_VERSION
from ropeway.routing.embedded import EmbeddedRoutes
from tests.contracts.routes import ORDERS, TIMEOUT_S, put_topic, until
from tests.routing.test_embedded import sharing

ROOT = Path(__file__).parents[2]


def test_another_file_or_a_newer_version_is_refused(tmp_path: Path):
    path = tmp_path / "routes.db"
    path.write_bytes(b"no database at all, but longer than a header of one" * 10)
    with pytest.raises(RouteError, match="cannot be read"):
        EmbeddedRoutes(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(RouteError, match=f"reads up to {SCHEMA_VERSION}"):
        EmbeddedRoutes(path)
    with pytest.raises(RouteError, match="cannot be read"):
        EmbeddedRoutes(tmp_path / "missing" / "routes.db")


def test_a_file_of_version_1_is_read_and_brought_up_to_date(tmp_path: Path):
    path = tmp_path / "routes.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE topics (name TEXT PRIMARY KEY, value BLOB NOT NULL);"
            "CREATE TABLE groups (name TEXT PRIMARY KEY, value BLOB NOT NULL);"
            "CREATE TABLE settings (namespace TEXT, key TEXT, value TEXT NOT NULL,"
            " PRIMARY KEY (namespace, key));"
            "INSERT INTO settings VALUES ('n', 'k', 'v');"
            "PRAGMA user_version = 1;"
        )

    async def main():
        async with sharing(path) as (first, second):
            assert first.settings == {("n", "k"): "v"}
            await put_topic(first, ORDERS)
            await until(lambda: second.topics == {"orders": ORDERS})

    asyncio.run(main())


def test_a_file_that_is_locked_delays_changes_and_then_refuses_them(tmp_path: Path):
    async def main():
        path = tmp_path / "routes.db"
        routes = EmbeddedRoutes(path, locked_for_s=0.1)
        patient = EmbeddedRoutes(path, locked_for_s=TIMEOUT_S)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RouteStoreUnavailableError, match="locked"):
                await put_topic(routes, ORDERS)
            waiting = asyncio.create_task(put_topic(patient, ORDERS))
            await asyncio.sleep(0)
            assert routes.topics == {}
            other.execute("ROLLBACK")
            await asyncio.wait_for(waiting, TIMEOUT_S)
        assert patient.topics == {"orders": ORDERS}
        for one in (routes, patient):
            await one.close()

    asyncio.run(main())


CREATING = """
import asyncio, sys
from pathlib import Path
from ropeway.routing.api import Topic
from ropeway.routing.embedded import EmbeddedRoutes

async def main(path, me, count):
    routes = EmbeddedRoutes(path)
    def grow(old):
        route = dict(old.route) if old else {}
        used = {number for numbers in route.values() for number in numbers}
        free = next(number for number in range(1024) if number not in used)
        route[me] = [*route.get(me, []), free]
        return Topic(name="t", read_queue_nums=1, write_queue_nums=1, route=route)
    for _ in range(count):
        await routes.change_topic("t", grow)
        print("grown", flush=True)
    await routes.close()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


def creating(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CREATING, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_processes_that_open_a_new_file_and_create_at_once_lose_nothing(
    tmp_path: Path,
):
    path = tmp_path / "routes.db"
    processes = [creating(path, name, 25) for name in ("a", "b", "c")]
    try:
        for one in processes:
            one.communicate(timeout=60)
    finally:
        for one in processes:
            one.kill()
            one.communicate()
    assert [one.returncode for one in processes] == [0, 0, 0]
    route = EmbeddedRoutes(path).topics["t"].route
    taken = [number for name in ("a", "b", "c") for number in route[name]]
    assert sorted(taken) == list(range(75))


def test_a_writer_that_is_killed_leaves_whole_changes_and_no_lock(tmp_path: Path):
    path = tmp_path / "routes.db"
    process = creating(path, "a", 1_000_000)
    assert process.stdout is not None
    done = [process.stdout.readline() for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    done += process.stdout.readlines()
    process.wait()
    process.stdout.close()

    async def main():
        routes = EmbeddedRoutes(path)
        grown = len(routes.topics["t"].route["a"])
        # The last one may have been committed and not told.
        assert grown - done.count("grown\n") in (0, 1)
        await put_topic(routes, ORDERS)
        await routes.close()

    asyncio.run(main())


def test_why_a_file_cannot_be_opened_is_said_in_the_system_s_words(tmp_path: Path):
    with pytest.raises(RouteError, match="No such file or directory"):
        EmbeddedRoutes(tmp_path / "none" / "routes.db")
