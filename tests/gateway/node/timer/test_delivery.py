"""Storing again: by queue, within bounds, and later where a topic is not open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.wire import message, properties
from ropeway.storage.api import LogUnavailableError, NoSuchPartitionError, NotReadyError
from tests.gateway.node.timer.rig import rigged
from tests.remoting import TIMEOUT_S, looped

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.node.timer.delivery import Due
    from ropeway.storage.api import LogError


def due(body: bytes, topic: str = "orders", queue_id: int = 0, **more: str) -> Due:
    text = properties.dump({"UNIQ_KEY": "K", **more})
    record = message.Message(
        topic="SCHEDULE_TOPIC_XXXX",
        queue_id=0,
        queue_offset=0,
        message_id=0,
        body=body,
        properties=text,
    )
    return message.encode(record), topic, queue_id, None


@looped
async def test_each_queue_gets_its_messages_in_their_order(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        given = [due(b"%d" % one, queue_id=one % 2) for one in range(700)]
        given += [due(bytes(700_000)) for _ in range(4)]
        assert set(await rig.delivery.deliver(given)) == {None}
        assert await rig.bodies(queue_id=1) == [f"{one}" for one in range(1, 700, 2)]
        even = await rig.bodies()
        assert even[:350] == [f"{one}" for one in range(0, 700, 2)]
        assert len(even) == 354


class NotOpen:
    """A partition that is not open until its log says so."""

    def __init__(self, true: object, topic: str) -> None:
        self._true = true
        self._topic = topic
        self.open = False

    def __getattr__(self, name: str) -> object:
        if not self.open:
            raise NotReadyError(self._topic)
        return getattr(self._true, name)


@looped
@pytest.mark.parametrize("opens", [True, False])
async def test_a_topic_is_opened_or_its_messages_are_put_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: bool
):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        partitions[0] = shut = NotOpen(partitions[0], "orders")

        async def ready(*_: object) -> None:
            await asyncio.sleep(0)
            if not opens:
                raise LogUnavailableError("no")
            shut.open = True

        monkeypatch.setattr(rig.log, "ready", ready)
        assert await rig.delivery.deliver([due(b"a")]) == [None]
        shut.open = True
        assert await rig.bodies() == (["a"] if opens else [])
        await rig.at(rig.clock() + 1000)
        assert await rig.bodies() == ["a"]


@looped
async def test_what_is_too_long_to_be_put_off_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        partitions[0] = shut = NotOpen(partitions[0], "orders")

        async def ready(*_: object) -> None:
            raise LogUnavailableError("no")

        monkeypatch.setattr(rig.log, "ready", ready)
        long = due(b"long", more="x" * (message.MAX_PROPERTIES_BYTES - 20))
        outcomes = await rig.delivery.deliver([due(b"a"), long])
        assert all(isinstance(one, LogUnavailableError) for one in outcomes)
        shut.open = True
        await rig.at(rig.clock() + 1000)
        assert await rig.delivery.deliver([due(b"a"), long]) == [None, None]
        assert await rig.bodies() == ["a", "long"]


class Watched:
    """A partition that counts what an append has, or refuses it."""

    def __init__(self, true: object) -> None:
        self._true = true
        self.refusal: LogError | None = None
        self.sizes: list[int] = []

    def append(self, records, store_ms, done) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sizes.append(sum(len(one[0]) for one in records))
        self._true.append(records, store_ms, done)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._true, name)


@looped
async def test_an_append_holds_no_more_than_a_megabyte(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        partitions[0] = watched = Watched(partitions[0])
        given = [due(bytes(400_000)) for _ in range(7)]
        assert set(await rig.delivery.deliver(given)) == {None}
        assert [round(size / 400_000) for size in watched.sizes] == [2, 2, 2, 1]


@looped
async def test_what_can_never_be_stored_is_dropped_and_said(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        partitions[0] = watched = Watched(partitions[0])
        watched.refusal = NoSuchPartitionError("it was deleted")
        with capture_logs() as logs:
            async with asyncio.timeout(TIMEOUT_S):
                outcomes = await rig.delivery.deliver([due(b"a"), due(b"b")])
        assert outcomes == [None, None]
        dropped = [one for one in logs if one["event"] == "delayed message dropped"]
        assert [one["reason"] for one in dropped] == ["it was deleted"] * 2


@looped
async def test_a_topic_that_was_stored_to_again_is_put_off_briefly_the_next_time(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        partitions[0] = watched = Watched(partitions[0])
        for _ in range(3):
            watched.refusal = LogUnavailableError("not now")
            with capture_logs() as logs:
                assert await rig.delivery.deliver([due(b"a")]) == [None]
            (line,) = (one for one in logs if "put off" in one["event"])
            assert line["for_ms"] == 1000
            watched.refusal = None
            await rig.at(rig.clock() + 1000)


@looped
async def test_a_clock_that_is_set_back_makes_no_pause_longer(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        partitions = rig.topics.get("orders").partitions
        true = partitions[0]
        partitions[0] = watched = Watched(true)
        watched.refusal = LogUnavailableError("not now")
        assert await rig.delivery.deliver([due(b"put off")]) == [None]
        partitions[0] = true
        rig.clock.now_ms -= 3_600_000
        assert await rig.delivery.deliver([due(b"later")]) == [None]
        assert await rig.bodies() == ["later"]
