"""A node killed at any step of a delivery: what was acknowledged comes all the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands.send import RecallMessage, SendReply
from tests.gateway.node.timer.killed import STEPS
from tests.remoting import Remoting, connect, looped
from tests.requests import pulling, sending
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
COUNT = 20
DELAY_MS = 1500
END_S = 60


@contextmanager
def node(data: Path, step: str, port: int) -> Iterator[subprocess.Popen]:
    command = ["-m", "tests.gateway.node.timer.killed", str(data), step, str(port)]
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(END_S)
        finally:
            process.kill()
            process.stdout.close()


async def send(client: Remoting) -> dict[str, int]:
    """Send messages that wait, the last of them recalled: what was acknowledged."""
    due = {}
    try:
        for number in range(COUNT):
            due_ms = int(time.time() * 1000) + DELAY_MS
            pairs = {"TIMER_DELIVER_MS": str(due_ms), "UNIQ_KEY": f"{number:032}"}
            answer = await client.ask(sending("orders", pairs=pairs), b"%d" % number)
            due[f"{number}"] = due_ms
        handle = answer.read(SendReply).recall_handle
        recall = RecallMessage(topic="orders", recall_handle=handle)
        if (await client.ask(recall)).code == 0:
            del due[f"{number}"]
            due["recalled"] = number
    except (ConnectionError, RuntimeError):
        pass
    return due


@pytest.mark.rule(
    "timer.md",
    "Noted and not delivered cannot be, because the log has it before it is noted.",
)
@looped
@pytest.mark.parametrize("step", STEPS)
async def test_what_was_acknowledged_comes_after_a_kill(tmp_path: Path, step: str):
    (port,) = free_ports(1)
    where = SimpleNamespace(host="127.0.0.1", port=port)
    with node(tmp_path, step, port) as killed:
        async with connect(where) as client:
            await client.ask(sending("orders", queue_id=1), b"makes the topic")
            due = await send(client)
        await asyncio.to_thread(killed.wait, END_S)
    recalled = due.pop("recalled", None)
    found, stored = [], {}
    with node(tmp_path, "never", port):
        async with connect(where) as client:
            async with asyncio.timeout(END_S):
                while not due.keys() <= stored.keys():
                    pull = pulling("orders", len(found))
                    found += (await client.ask(pull)).messages()
                    stored = {one.body.decode(): one.store_ms for one in found}
                    await asyncio.sleep(0.02)
    assert all(stored[body] >= at_ms for body, at_ms in due.items())
    assert f"{recalled}" not in stored
    # A repeat is possible where the kill came before it was noted, and only then.
    assert len(found) <= 2 * COUNT
