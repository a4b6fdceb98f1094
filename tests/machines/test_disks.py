"""Disks that are full or can only be read: refused clearly, and nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.offsets import (
    QueryConsumerOffset,
    UpdateConsumerOffset,
)
from tests.gateway.pop.rig import Consumer
from tests.machines.places import OnSmallDisk, needs_mount
from tests.remoting import TIMEOUT_S, Frame, Remoting, looped
from tests.requests import pulling, sending
from tests.system.process import START_SECONDS
from tests.system.ropeway import PATIENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = [needs_mount, pytest.mark.slow]

MEBIBYTES = 48
SMALL = f"[log]\nsegment_bytes = 4194304\n{PATIENT}"
BODY = bytes(100_000)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OnSmallDisk]:
    settings = tmp_path / "small.toml"
    settings.write_text(SMALL)
    made = OnSmallDisk(tmp_path / "node", MEBIBYTES, ["--config", str(settings)])
    made.node.start()
    yield made
    made.node.kill()


@asynccontextmanager
async def connected(disk: OnSmallDisk) -> AsyncIterator[Remoting]:
    port = disk.node.broker_port
    client = Remoting(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield client
    finally:
        await client.close()


def creating(topic: str) -> CreateTopic:
    return CreateTopic(
        topic=topic,
        default_topic="",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
    )


def is_clear(answer: Frame) -> bool:
    """Whether an answer says what failed, and not how Python calls it."""
    said = answer.remark or ""
    return bool(said) and not any(
        word in said
        for word in ("Error(", "Traceback", "Errno", "sqlite3", "rocksdict")
    )


async def stored(client: Remoting, topic: str) -> list[bytes]:
    found: list[bytes] = []
    while True:
        answer = await client.ask(pulling(topic, len(found)))
        if not (messages := answer.messages()):
            return found
        found += [one.body for one in messages]


@looped
async def test_a_full_disk_refuses_and_loses_nothing_and_passes(
    disk: OnSmallDisk,
) -> None:
    async with connected(disk) as client:
        assert (await client.ask(creating("orders"))).code == 0
        kept = [b"%d" % number for number in range(20)]
        for body in kept:
            assert (await client.ask(sending("orders"), body)).code == 0
        # Its first pull makes a group.
        assert await stored(client, "orders") == kept
        with disk.filled():
            kept += await sent_until_refused(client)
            await nothing_fails_without_a_word(client)
            assert await stored(client, "orders") == kept
        await until_sent(client, b"after")
        kept.append(b"after")
        await everything_works(client)
        assert await stored(client, "orders") == kept
    disk.node.stop()


async def sent_until_refused(client: Remoting) -> list[bytes]:
    """What was acknowledged, until the disk had no room for more."""
    kept = []
    for number in range(MEBIBYTES * 10):
        body = b"%d" % number + BODY
        answer = await client.ask(sending("orders"), body)
        if answer.code != 0:
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE, answer
            assert is_clear(answer), answer
            return kept
        kept.append(body)
    raise AssertionError("the disk was never full")


async def nothing_fails_without_a_word(client: Remoting) -> None:
    """Make a topic, commit an offset and pop on a full disk."""
    for what in (
        creating("more"),
        UpdateConsumerOffset("readers", "orders", 0, 7, "broker-0"),
        Consumer(client).header(),
    ):
        answer = await client.ask(what)
        assert answer.code == 0 or is_clear(answer), (what, answer)


async def until_sent(client: Remoting, body: bytes) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while (await client.ask(sending("orders"), body)).code != 0:  # noqa: ASYNC110 - another process's disk
            await asyncio.sleep(0.05)


async def everything_works(client: Remoting) -> None:
    """Make a topic, pop, acknowledge, commit an offset and read it."""
    assert (await client.ask(creating("late"))).code == 0
    popping = Consumer(client)
    found = await popping.take(2)
    assert await popping.ack(found, found.offsets[0]) == 0
    committed = UpdateConsumerOffset("readers", "orders", 0, 9, "broker-0")
    assert (await client.ask(committed)).code == 0
    asked = QueryConsumerOffset(consumer_group="readers", topic="orders", queue_id=0)
    assert (await client.ask(asked)).fields == {"offset": "9"}


def test_data_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    script = 'mount -t tmpfs -o ro,mode=0700 tmpfs "$1" && shift && exec "$@"'
    serve = ["-m", "ropeway.gateway.cli.main", "serve", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [
            *["unshare", "--mount", "sh", "-c", script, "sh", str(data)],
            *[sys.executable, *serve, "--data", str(data)],
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "Read-only file system" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
