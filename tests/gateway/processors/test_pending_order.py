"""Sends that come at once to a topic which is made and opened for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.node.fair_queueing import Slices
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.storage.api import NotReadyError
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

COUNT = 100


@looped
async def test_who_has_waited_for_a_topic_stays_before_who_waits_for_it_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Found by seed 2131142230 of the simulator, on Pulsar and without a fault.

    Some waited for the queue, as it was not open yet, while others that had come later
    were waiting for the topic still: they were stored first.
    """
    async with running(tmp_path) as (app, client):
        await client.ask(sending("other"), b"x")
        partition, log = type(app.node.topics.get("other").partitions[0]), app.node.log
        append, opened = partition.append, asyncio.Event()

        def not_at_once(self, *given) -> None:
            if not opened.is_set():
                raise NotReadyError("orders", 0)
            append(self, *given)

        async def ready(_log, _topic, numbers=None) -> None:
            await asyncio.sleep(0)
            if numbers == (0,):
                opened.set()

        async def pause(_slices, *_) -> None:
            await asyncio.sleep(0)

        monkeypatch.setattr(partition, "append", not_at_once)
        monkeypatch.setattr(type(log), "ready", ready)
        # Others have their turn between any two that go on.
        monkeypatch.setattr(Slices, "pause", pause)
        answers = await asyncio.gather(
            *(client.send(sending("orders"), b"%d" % number) for number in range(COUNT))
        )
        offsets = [one.read(SendReply).queue_offset for one in answers]
        assert offsets == list(range(COUNT))
