"""Offsets go on where the topic ends, by what the broker and the newest pack say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from storage.api import LogDamagedError
from storage.pulsar.client import PulsarClient
from storage.pulsar.commands import Access
from storage.pulsar.pack import encode
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for, truncate

if TYPE_CHECKING:
    from storage.pulsar import PulsarLog
    from storage.pulsar.entry import Position
    from storage.pulsar.errors import PulsarError
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


async def write(
    pulsar: Pulsar, namespace: str, payload: bytes, sequence_id: int, name: str
) -> None:
    """Put an entry into the topic's first partition, as no node of ours would."""
    client = PulsarClient(pulsar.service_url)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stored(_: Position | None, error: PulsarError | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    producer = await client.producer(
        f"persistent://{namespace}/{TOPIC}-partition-0",
        name,
        access=Access.SHARED,
        lost=lambda _: None,
    )
    producer.send([payload], sequence_id, stored, publish_ms=1)
    await done
    await client.close()


async def stored(log: PulsarLog, *names: str) -> None:
    await log.create(TOPIC, [0, 1])
    partition = await opened(log, 0)
    for name in names:
        await begin(partition, record(name))


def test_a_forgotten_producer_goes_on_by_the_newest_pack(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """What a broker does after six hours, another name does at once."""

    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await stored(log, "a", "b")
        settings = settings_for(pulsar, pulsar_namespace, producer_name="another")
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert await begin(partition, record("c")) == 2
            assert await read_all(partition) == ["a", "b", "c"]

    asyncio.run(main())


def test_a_truncated_topic_goes_on_by_what_the_broker_knows(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a", "b", "c")
        await asyncio.to_thread(truncate, pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (3, 3)
            assert await begin(partition, record("d")) == 3
            assert await read_all(partition) == ["d"]

    asyncio.run(main())


def test_a_writer_that_is_not_ours_is_refused_and_others_go_on(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a")
        await write(pulsar, pulsar_namespace, b"hello", 7, "stranger")
        async with log_of(settings) as log:
            with pytest.raises(
                LogDamagedError, match=r"-partition-0: entry \d+:1 is 5 bytes .*'hell'"
            ):
                await opened(log, 0)
            await log.create("others", [0])
            assert await begin(await opened(log, 0, "others"), record("x")) == 0

    asyncio.run(main())


def test_a_newest_pack_that_contradicts_the_broker_is_refused(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, open_s=1)
        async with log_of(settings) as log:
            await stored(log, "a", "b")
        pack = encode([([record("c")], 1, None, 0)], 8)
        await write(pulsar, pulsar_namespace, pack, 8, "stranger")
        async with log_of(settings) as log:
            with pytest.raises(LogDamagedError, match=r"offset 8 .* the last was 1"):
                await opened(log, 0)

    asyncio.run(main())
