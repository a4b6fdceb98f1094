"""Offsets go on where they were, whatever Pulsar has deleted, lost or forgotten."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import NotReadyError
from ropeway.storage.pulsar.end_offsets import (
    FURTHEST_COMMIT,
    EndOffsets,
    decode_end,
    key_of,
)
from ropeway.storage.pulsar.terms import LAST_OFFSET
from ropeway.storage.pulsar.topic_names import PulsarName
from tests.contracts.log import TOPIC, begin, opened, read_all, record, texts
from tests.contracts.state import ignore
from tests.storage.pulsar.logs import followed, log_of, settings_for, truncate, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.pulsar import PulsarLog
    from ropeway.storage.pulsar.state import PulsarState
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@asynccontextmanager
async def leader_of(
    pulsar: Pulsar, namespace: str, broker: str = "b", **others: Any
) -> AsyncIterator[tuple[PulsarLog, PulsarState]]:
    """A log with the state of a broker that it leads."""
    async with log_of(settings_for(pulsar, namespace, **others)) as log:
        state = await log.open_state(broker, "n", ignore)
        try:
            await state.take_over()
            await log.create(TOPIC, [0])
            yield log, state
        finally:
            await state.close()


def key(log: PulsarLog) -> str:
    return key_of(log._catalog.name(TOPIC), 0)


async def stored(log: PulsarLog, *names: str) -> None:
    partition = await opened(log, 0)
    for name in names:
        await begin(partition, record(name))


async def forgotten(pulsar: Pulsar, namespace: str) -> None:
    """Have Pulsar delete all messages. Another producer name does the rest at once.

    By itself, a broker forgets a producer that was away for six hours.
    """
    await asyncio.to_thread(truncate, pulsar, namespace)


def misfit(logs: list[Any]) -> dict[str, Any]:
    """The one line that says that an end does not fit."""
    (line,) = [one for one in logs if "offsets go on where they were" in one["event"]]
    assert line["log_level"] == "error"
    return dict(line)


def test_what_was_never_used_is_not_in_use_and_what_moved_last_comes_first() -> None:
    """A leader opened every queue of 10,000 topics, and those in use among them."""

    def part(number: int, **more: Any) -> Any:
        name = PulsarName("public", "default", "t")
        known = {"number": number, "name": name, "watchers": {}, "was_read": False}
        return SimpleNamespace(**known | more)

    moved, read, watched, latest, *never = (
        *(part(0), part(1, was_read=True), part(2, watchers={print: None}), part(3)),
        *map(part, range(4, 99)),
    )
    ends = EndOffsets()
    for one in (moved, latest):
        ends._changed(key_of(one.name, one.number), "1")
    found = ends.in_use([*never, moved, read, watched, latest])
    assert [one.number for one in found] == [3, 0, 1, 2]


def test_where_a_closed_partition_ends_is_looked_up_once() -> None:
    """A node with 10,000 topics looked up 80,000 keys every 10 s, for its counts."""
    asked = []

    def get(key: str) -> str:
        asked.append(key)
        return "7"

    state: Any = SimpleNamespace(leading=True, get=get)
    name = PulsarName("public", "default", "t")
    partition: Any = SimpleNamespace(name=name, number=1, noted_end=-1)
    ends = EndOffsets()
    ends._state = state
    assert [ends.noted(partition) for _ in range(3)] == [7, 7, 7]
    assert asked == [key_of(name, 1)]
    state.leading = False
    assert ends.noted(partition) is None


@pytest.mark.parametrize("ends", ["in order", "by a crash"])
def test_an_end_outlives_every_message_and_what_pulsar_knows_of_the_owner(
    pulsar: Pulsar, pulsar_namespace: str, ends: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            await stored(log, "a", "b", "c")
            if ends == "in order":
                await log.release()
            await until(lambda: state.get(key(log)) == "3")
        await forgotten(pulsar, pulsar_namespace)
        with capture_logs() as logs:
            async with leader_of(pulsar, pulsar_namespace, producer_name="p") as (
                log,
                _,
            ):
                partition = await opened(log, 0)
                assert (partition.first, partition.end) == (3, 3)
                assert await begin(partition, record("d")) == 3
                assert await read_all(partition) == ["d"]
                assert log.misfits == 1
        line = misfit(logs)
        assert (line["end_of_topic"], line["noted_end"], line["end"]) == (0, 3, 3)
        # Now it stands in the topic again, and nothing is out of place.
        async with leader_of(pulsar, pulsar_namespace, producer_name="p") as (log, _):
            partition = await opened(log, 0)
            assert (partition.first, partition.end, log.misfits) == (3, 4, 0)

    asyncio.run(main())


def test_an_end_that_moves_is_noted_without_being_asked(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            await stored(log)
            assert state.get(key(log)) == "0"
            await stored(log, "a")
            await until(lambda: state.get(key(log)) == "1")
            await stored(log, "b", "c")
            await until(lambda: state.get(key(log)) == "3")
        # Who opens it next notes it at once.
        async with leader_of(pulsar, pulsar_namespace, broker="other") as (log, state):
            await opened(log, 0)
            assert state.get(key(log)) == "3"
            await stored(log, "d")
            await log.release()
            partition = log.partition(TOPIC, 0)
            assert partition.last_end == 4
            with pytest.raises(NotReadyError):
                assert partition.end
            await state.give_up()
            with pytest.raises(NotReadyError):
                assert partition.last_end

    asyncio.run(main())


def test_what_a_group_has_committed_counts_where_nothing_else_is_known(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            log.compare_with(lambda topic, _: (100, "g") if topic == TOPIC else None)
            with capture_logs() as logs:
                partition = await opened(log, 0)
            assert (partition.first, partition.end) == (100, 100)
            line = misfit(logs)
            assert (line["group"], line["committed"], line["noted_end"]) == (
                *("g", 100),
                None,
            )
            assert await begin(partition, record("a")) == 100

    asyncio.run(main())


def test_a_topic_that_began_again_below_a_group_goes_on_behind_it(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """Messages from before were stored at offsets that the group has behind it."""

    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [0])
            await stored(log, "0", "1", "2", "3")
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            log.compare_with(lambda *_: (100, "g"))
            partition = await opened(log, 0)
            assert await begin(partition, record("100")) == 100
            assert await read_all(partition) == ["0", "1", "2", "3", "100"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("committed", "noted"),
    [(100, True), (FURTHEST_COMMIT + 1, False), (LAST_OFFSET, False)],
    ids=["the state knows better", "nobody gets so far", "nor there"],
)
def test_a_commit_beyond_what_can_be_is_said_and_does_not_count(
    pulsar: Pulsar, pulsar_namespace: str, committed: int, *, noted: bool
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            if noted:
                await stored(log, "a")
            await log.release()
            await state.flush()
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            log.compare_with(lambda *_: (committed, "g"))
            with capture_logs() as logs:
                partition = await opened(log, 0)
            assert partition.end == int(noted)
            (line,) = [one for one in logs if "beyond the end" in one["event"]]
            assert (line["group"], line["committed"]) == ("g", committed)
            assert log.misfits == 1

    asyncio.run(main())


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
def test_reads_step_over_what_pulsar_has_lost_at_the_end(
    pulsar: Pulsar, pulsar_namespace: str, tail_bytes: int
) -> None:
    others = {"tail_bytes": tail_bytes}

    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace, **others) as (log, state):
            await stored(log, "0", "1", "2")
            await log.release()
            state.put(key(log), "7")
            await state.flush()
            async with log_of(settings_for(pulsar, pulsar_namespace)) as reader:
                theirs = await followed(reader)
                assert theirs.end == 3
                partition = await opened(log, 0)
                await until(lambda: theirs.end == 7)
                for one in (partition, theirs):
                    assert await read_all(one) == ["0", "1", "2"]
                    for offset in (3, 5, 7):
                        chunk = await one.read(offset, 9, 1 << 20)
                        assert (chunk.records, chunk.next_offset) == (0, 7)
                assert await begin(partition, record("7")) == 7
                await until(lambda: theirs.end == 8)
                for one in (partition, theirs):
                    assert await read_all(one) == ["0", "1", "2", "7"]
                    assert texts(await one.read(4, 9, 1 << 20)) == ["7"]
        # Who comes later has only the topic to learn it from.
        async with leader_of(pulsar, pulsar_namespace, **others) as (log, _):
            partition = await opened(log, 0)
            assert await read_all(partition) == ["0", "1", "2", "7"]
            assert log.misfits == 0

    asyncio.run(main())


def test_a_topic_that_was_deleted_begins_at_0_again(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            await stored(log, "a", "b")
            await until(lambda: state.get(key(log)) == "2")
            await log.delete(TOPIC)
            assert state.get(key(log)) is None
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            assert (partition.first, partition.end, log.misfits) == (0, 0, 0)
            assert await begin(partition, record("a")) == 0
            await until(lambda: state.get(key(log)) == "1")
            # By the last of several brokers, as the routes tell.
            log.forget_ends(TOPIC)
            assert state.get(key(log)) is None

    asyncio.run(main())


@pytest.mark.parametrize("value", ["", "-1", "1.5", "²", "9" * 5000, "x"])
def test_an_end_that_cannot_be_read_is_said_and_left_out(value: str) -> None:
    with capture_logs() as logs:
        assert decode_end("end/a/b/c/0", value) is None
    assert logs[0]["key"] == "end/a/b/c/0"
    assert decode_end("k", "17") == 17
    assert decode_end("k", None) is None
