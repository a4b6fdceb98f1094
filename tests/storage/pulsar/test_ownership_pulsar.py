"""A partition has one owner: who opens it takes it, and who lost it serves no more."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import (
    LogError,
    LogUnavailableError,
    NotReadyError,
    OutcomeUnknownError,
)
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for, until

if TYPE_CHECKING:
    from ropeway.storage.pulsar import PulsarLog
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TAKEOVERS = 4


def test_a_second_node_takes_over_while_the_first_appends(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """Nothing acknowledged is lost or moved, and who was fenced stores nothing more."""
    settings = settings_for(pulsar, pulsar_namespace)
    acknowledged: dict[int, str] = {}
    lost: list[tuple[str, int]] = []

    async def flood(log: PulsarLog, name: str) -> None:
        partition = log.partition(TOPIC, 0)
        for number in range(1_000_000):
            text = f"{name}.{number}"
            try:
                offset = await begin(partition, record(text), record(text + "+"))
            except OutcomeUnknownError:
                continue
            except NotReadyError:
                return
            assert offset not in acknowledged
            acknowledged[offset] = text

    async def main() -> None:
        async with log_of(settings, lambda *which: lost.append(which)) as first:
            await first.create(TOPIC, [0])
            await opened(first, 0)
            logs = [first]
            old = asyncio.ensure_future(flood(first, "0"))
            contexts = []
            for number in range(1, TAKEOVERS + 1):
                seen = len(acknowledged)
                await until(lambda seen=seen: len(acknowledged) > seen + 20)  # type: ignore[misc]
                context = log_of(settings, lambda *which: lost.append(which))
                contexts.append(context)
                log = await context.__aenter__()
                await opened(log, 0)
                logs.append(log)
                new = asyncio.ensure_future(flood(log, str(number)))
                await old
                old = new
            seen = len(acknowledged)
            await until(lambda: len(acknowledged) > seen + 20)
            assert lost == [(TOPIC, 0)] * TAKEOVERS
            for log in logs[:-1]:
                with pytest.raises(NotReadyError):
                    log.partition(TOPIC, 0).read_now(0, 1, 1)
            for context in reversed(contexts):
                await context.__aexit__(None, None, None)
            await old_ended(old)
        async with log_of(settings) as log:
            texts = await read_all(await opened(log, 0))
        for offset, text in acknowledged.items():
            assert texts[offset : offset + 2] == [text, text + "+"]
        assert len(set(texts)) == len(texts)

    asyncio.run(main())


async def old_ended(flood: asyncio.Task[None]) -> None:
    """Wait for a flood whose log was closed."""
    try:
        await flood
    except LogError:
        assert flood.done()


def test_many_partitions_open_side_by_side(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [63])
            partitions = [log.partition(TOPIC, number) for number in range(64)]
            began = time.monotonic()
            await log.ready(TOPIC)
            assert time.monotonic() - began < 60
            offsets = await asyncio.gather(
                *[begin(one, record(str(one.number))) for one in partitions]
            )
            assert offsets == [0] * 64

    asyncio.run(main())


def test_who_was_fenced_can_take_it_back_when_told_to(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as one, log_of(settings) as two:
            await one.create(TOPIC, [0])
            await two.create(TOPIC, [0])
            ours = await opened(one, 0)
            assert await begin(ours, record("0")) == 0
            theirs = await opened(two, 0)
            assert await begin(theirs, record("1")) == 1
            with pytest.raises(OutcomeUnknownError, match=r"Fenced|fenced"):
                await begin(ours, record("never stored"))
            with pytest.raises(NotReadyError):
                begin(ours, record("never sent"))
            await one.ready(TOPIC)
            assert one.partition(TOPIC, 0) is ours
            assert await read_all(ours) == ["0", "1"]
            assert await begin(ours, record("2")) == 2

    asyncio.run(main())


def test_who_was_fenced_does_not_begin_another_term(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """It has not heard of it, for it only listens."""

    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as one, log_of(settings) as two:
            await one.create(TOPIC, [0])
            await two.create(TOPIC, [0])
            ours = await opened(one, 0)
            await one._ownership.reopen(one.partition(TOPIC, 0))
            assert await begin(ours, record("0")) == 0
            theirs = await opened(two, 0)
            with pytest.raises(LogUnavailableError, match=r"Fenced|fenced"):
                await one._ownership.reopen(one.partition(TOPIC, 0))
            await one._ownership.reopen(one.partition(TOPIC, 0))
            with pytest.raises(NotReadyError):
                begin(ours, record("never sent"))
            assert await begin(theirs, record("1")) == 1

    asyncio.run(main())


def test_closing_while_partitions_open_ends_all_of_it(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [30])
            for number in range(31):
                log.partition(TOPIC, number)
            opening = asyncio.ensure_future(log.ready(TOPIC))
            await asyncio.sleep(0.01)
            await log.close()
            with pytest.raises(LogUnavailableError):
                await opening

    asyncio.run(main())
