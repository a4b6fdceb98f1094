"""Compacted topics on a real Pulsar: what is left, with which offsets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError, NoSuchPartitionError, Record
from ropeway.storage.native import NativeMessage
from ropeway.storage.pulsar import open_log
from ropeway.storage.pulsar.admin import Admin
from tests.contracts.log import TOPIC, begin
from tests.storage.compaction.logs import Describer, record
from tests.storage.pulsar.logs import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ropeway.storage.api import RecordParts
    from ropeway.storage.native import NativePosition
    from ropeway.storage.pulsar import PulsarLog
    from ropeway.storage.pulsar.partition import PulsarPartition
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


class Keyed:
    """Records `key=value` are messages with that key, whose payload is the value."""

    def native(self, records: Sequence[bytes]) -> list[NativeMessage]:
        pairs = [bytes(data[4:]).partition(b"=") for data in records]
        return [NativeMessage(value, {}, key.decode()) for key, _, value in pairs]

    def record(self, message: NativeMessage, place: NativePosition) -> RecordParts:
        del place
        return Record(*record(f"{message.key}={bytes(message.body).decode()}"))


@contextlib.asynccontextmanager
async def opened(server: Pulsar, namespace: str) -> AsyncIterator[PulsarLog]:
    log = await open_log(
        settings_for(server, namespace, tail_bytes=0), prepare=True, converter=Keyed()
    )
    log.compaction.start(Describer(), 0.5)
    try:
        await log.create(TOPIC, [0], "pulsar")
        log.compaction.keep_last(TOPIC, compacted=True)
        log.partition(TOPIC, 0)
        await log.ready(TOPIC)
        yield log
    finally:
        await log.close()


async def stored(partition: PulsarPartition, offset: int = 0) -> dict[int, str]:
    """What is left from an offset on, by reading on as consumers do."""
    found: dict[int, str] = {}
    offset = max(offset, partition.first)
    while offset < partition.end:
        chunk = await partition.read(offset, 1, 1 << 20)
        assert chunk.next_offset > offset, "a read must move on"
        if chunk.records:
            found[chunk.next_offset - 1] = bytes(chunk.data[0])[4:].decode()
        offset = chunk.next_offset
    return found


def test_the_last_of_each_key_is_left_with_its_offset(counting_pulsar: Pulsar) -> None:
    async def main() -> None:
        namespace = "public/last-of-each"
        async with opened(counting_pulsar, namespace) as log:
            partition = log.partition(TOPIC, 0)
            for start in range(0, 1024, 128):
                await asyncio.gather(
                    *(
                        begin(partition, record(f"key-{n % 10}={n}"))
                        for n in range(start, start + 128)
                    )
                )
            (status,) = await log.compaction.compact(TOPIC)
            assert (status.clean_end, status.clean_records) == (1024, 10)
            wanted = {n: f"key-{n % 10}={n}" for n in range(1014, 1024)}
            assert await stored(partition) == wanted
            assert (partition.end, partition.next_offset) == (1024, 1024)
            # An offset that is gone goes on with the next one there is.
            assert await stored(partition, 500) == wanted
            chunk = await partition.read(500, 4, 1 << 20)
            # A read answers as soon as it has something.
            assert 1 <= chunk.records <= 4
            assert chunk.next_offset == 1014 + chunk.records
        async with opened(counting_pulsar, namespace) as log:
            partition = log.partition(TOPIC, 0)
            assert (partition.first, partition.end) == (1014, 1024)
            assert await stored(partition) == wanted
            assert await begin(partition, record("key-4=new")) == 1024
            newest = await log.compaction.latest(TOPIC, "key-4")
            assert newest is not None
            assert (newest.offset, newest.data[4:]) == (1024, b"key-4=new")
            assert await log.compaction.latest(TOPIC, "key-10") is None

    asyncio.run(main())


def test_a_round_that_failed_is_told_of_and_the_next_one_is_not_held_back(
    counting_pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = "ERROR", "a subscription that could not seek"
    answers = iter([("NOT_RUN", ""), failed, failed])
    real = Admin.compaction

    async def compaction(admin: Admin, full_name: str) -> tuple[str, str]:
        """What Pulsar says of rounds; that of the first one is made up."""
        while True:
            found = await real(admin, full_name)
            if found[0] != "RUNNING":
                return next(answers, found)
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with opened(counting_pulsar, "public/failed") as log:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *(record(f"a={n}") for n in range(3)))
            monkeypatch.setattr(Admin, "compaction", compaction)
            with pytest.raises(LogUnavailableError, match="could not seek"):
                await log.compaction.compact(TOPIC)
            (status,) = await log.compaction.compact(TOPIC)
            assert (status.clean_end, status.clean_records) == (3, 1)

    asyncio.run(main())


def test_a_look_compacts_what_has_enough_that_is_new_and_tells_what_failed(
    counting_pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = Admin.compact

    async def compact(admin: Admin, full_name: str) -> None:
        asked.append(full_name)
        if len(asked) == 1:
            raise LogUnavailableError("a fault of this test")
        await real(admin, full_name)

    async def main() -> None:
        async with opened(counting_pulsar, "public/looks") as log:
            partition = log.partition(TOPIC, 0)
            monkeypatch.setattr(Admin, "compact", compact)

            async def look() -> tuple[int, int, str | None]:
                await log.compaction.look()
                (status,) = await log.compaction.status(TOPIC)
                return len(asked), status.clean_end, status.problem

            # There is nothing yet.
            assert await look() == (0, 0, None)
            for key in "abcd":
                await begin(partition, record(f"{key}=1"))
            assert await look() == (1, 0, "a fault of this test")
            assert await look() == (2, 4, None)
            # Of all that is left, half has to be new.
            for key in "abc":
                await begin(partition, record(f"{key}=2"))
            assert await look() == (2, 4, None)
            await begin(partition, record("d=2"))
            assert await look() == (3, 8, None)
            assert await look() == (3, 8, None)

    asyncio.run(main())


def test_a_batch_of_which_some_are_left_keeps_their_offsets(
    counting_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        async with opened(counting_pulsar, "public/batches") as log:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *(record(f"{key}=1") for key in "abcde"))
            await begin(partition, *(record(f"{key}=2") for key in "bd"))
            await begin(partition, record("f=1"))
            await log.compaction.compact(TOPIC)
            left = {0: "a=1", 2: "c=1", 4: "e=1", 5: "b=2", 6: "d=2", 7: "f=1"}
            for offset in range(8):
                assert await stored(partition, offset) == {
                    n: text for n, text in left.items() if n >= offset
                }
            chunk = await partition.read(0, 32, 1 << 20)
            assert chunk.records == sum(n < chunk.next_offset for n in left) > 0

    asyncio.run(main())


def test_a_topic_is_read_compacted_only_while_it_is_said_to_be(
    counting_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        async with opened(counting_pulsar, "public/while") as log:
            partition = log.partition(TOPIC, 0)
            for text in ("a=1", "a=2", "b=1"):
                await begin(partition, record(text))
            await log.compaction.look()
            (status,) = await log.compaction.status(TOPIC)
            assert (status.clean_end, status.problem) == (3, None)
            assert await stored(partition) == {1: "a=2", 2: "b=1"}
            log.compaction.keep_last(TOPIC, compacted=False)
            assert await stored(partition) == {0: "a=1", 1: "a=2", 2: "b=1"}
            with pytest.raises(NoSuchPartitionError, match="not compacted"):
                await log.compaction.compact(TOPIC)

    asyncio.run(main())
