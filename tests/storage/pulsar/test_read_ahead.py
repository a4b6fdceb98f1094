"""Cold readers: ahead of who follows them, few, and not surprised by retention."""

from __future__ import annotations

import asyncio
import random
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.pack import encode, encode_marker
from ropeway.storage.pulsar.positions import Positions
from ropeway.storage.pulsar.read_ahead import Session
from ropeway.storage.pulsar.terms import after, claiming
from tests.contracts.log import TOPIC, begin, opened, read_all, record, texts
from tests.storage.pulsar.logs import log_of, settings_for, truncate, until, write

if TYPE_CHECKING:
    from ropeway.storage.api import Partition
    from ropeway.storage.pulsar import PulsarLog
    from ropeway.storage.pulsar.entry import Entry
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.reader import Reader
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


async def fill(log: PulsarLog, packs: int, each: int = 3) -> Partition:
    """Packs of some records each, which say their offsets."""
    await log.create(TOPIC, [0])
    partition = await opened(log, 0)
    for number in range(packs):
        base = number * each
        await begin(
            partition,
            *[record(str(base + i), tag_hash=(base + i) % 5) for i in range(each)],
            store_ms=1000 + number,
        )
    return partition


def test_any_offset_is_found_whatever_the_array_has_forgotten(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0, positions=4)
        async with log_of(settings) as log:
            await fill(log, 120)
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            choice = random.Random(5)
            for offset in [0, 359, *(choice.randrange(360) for _ in range(20))]:
                chunk = await partition.read(offset, 2, 1 << 20)
                assert texts(chunk)[0] == str(offset)
            assert await read_all(partition) == [str(i) for i in range(360)]

    asyncio.run(main())


def test_a_consumer_keeps_its_reader_and_idle_ones_are_closed(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(
            pulsar,
            pulsar_namespace,
            tail_bytes=0,
            readers_per_partition=2,
            reader_idle_s=1,
        )
        async with log_of(settings) as log:
            partition = await fill(log, 40)
            readers = log._readers
            places = [0, 30, 60]
            for _ in range(6):
                for at, place in enumerate(places):
                    chunk = await partition.read(place, 4, 1 << 20)
                    assert (
                        texts(chunk)
                        == [str(place + i) for i in range(4)][: chunk.records]
                    )
                    places[at] = chunk.next_offset
                assert readers._count <= 2
            await until(lambda: readers._count == 0)
            assert texts(await partition.read(7, 1, 99)) == ["7"]

    asyncio.run(main())


def test_readers_of_all_partitions_are_bounded(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0, readers=3)
        async with log_of(settings) as log:
            partition = await fill(log, 30)
            chunks = await asyncio.gather(
                *[partition.read(offset, 2, 1 << 20) for offset in range(0, 90, 9)]
            )
            assert [texts(chunk)[0] for chunk in chunks] == [
                str(offset) for offset in range(0, 90, 9)
            ]
            assert log._readers._count <= 3

    asyncio.run(main())


def test_two_consumers_at_one_place_do_not_take_each_others_packs(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            partition = await fill(log, 50)
            expected = [str(i) for i in range(150)]
            found = await asyncio.gather(*[read_all(partition) for _ in range(4)])
            assert found == [expected] * 4

    asyncio.run(main())


def test_reading_goes_on_over_what_an_administrator_truncated(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(
            pulsar, pulsar_namespace, tail_bytes=0, read_ahead_bytes=1
        )
        async with log_of(settings) as log:
            partition = await fill(log, 40)
            assert texts(await partition.read(0, 1, 99)) == ["0"]
            await asyncio.to_thread(truncate, pulsar, pulsar_namespace)
            offset = 6

            async def read() -> None:
                nonlocal offset
                chunk = await partition.read(offset, 32, 1 << 20)
                offset = chunk.next_offset

            await until(lambda: offset >= 120, read)
            assert (partition.first, partition.end) == (120, 120)
            assert await begin(partition, record("120")) == 120
            assert texts(await partition.read(5, 1, 99)) == ["120"]
            assert await partition.store_time(5) is None

    asyncio.run(main())


def test_damage_is_told_and_what_is_around_it_is_read(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            await fill(log, 2)
        # Where 6 to 8 belong, in a format of the future; then 9 as it should be.
        strange = bytearray(encode([([record("?")], 1, None, 0)], 6))
        strange[8] = 7
        sound = encode([([record("9")], 1, None, 0)], 9)
        await write(pulsar, pulsar_namespace, bytes(strange), after(0, 9))
        await write(pulsar, pulsar_namespace, sound, after(0, 10))
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert texts(await partition.read(0, 99, 999)) == [str(i) for i in range(6)]
            for _ in range(2):
                with pytest.raises(
                    LogDamagedError, match=r"format 7; this program reads up to 1"
                ):
                    await partition.read(6, 1, 99)
            assert texts(await partition.read(9, 1, 99)) == ["9"]
            assert await begin(partition, record("10")) == 10
            assert texts(await partition.read(10, 1, 99)) == ["10"]

    asyncio.run(main())


def test_a_hole_is_told(pulsar: Pulsar, pulsar_namespace: str) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            await fill(log, 2)
        pack = encode([([record("9")], 1, None, 0)], 9)
        await write(pulsar, pulsar_namespace, pack, after(0, 10))
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            with pytest.raises(LogDamagedError, match="nothing from offset 6 to 8"):
                await partition.read(6, 1, 99)

    asyncio.run(main())


def test_markers_are_passed_over_however_many_there_are(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """Every term begins with two; here each has one pack, or none."""

    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0, positions=4)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            for number in range(30):
                partition = await opened(log, 0)
                if number % 3:
                    keyed = record(str(partition.end), keys=[f"k{partition.end}"])
                    await begin(partition, keyed, store_ms=10 * partition.end)
                await log.release()
        everything = [str(i) for i in range(20)]
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (0, 20)
            for offset in (13, 0, 19, 7):
                assert texts(await partition.read(offset, 1, 99)) == [str(offset)]
                assert await partition.offset_at(10 * offset - 5) == offset
                assert await partition.store_time(offset) == 10 * offset
                (hit,) = await log.query(TOPIC, f"k{offset}", 0, 999, 9)
                assert hit.offset == offset
            assert await partition.offset_at(191) == 20
            assert await read_all(partition) == everything

    asyncio.run(main())


def test_an_entry_of_an_older_term_behind_a_newer_one_is_told() -> None:
    async def main() -> None:
        session = Session(cast("PulsarPartition", Named()), 5, 1000)
        session.reader = cast("Reader", Named())
        session.received(stored(encode([([record("a")], 1, None, 0)], 5), after(1, 6)))
        session.received(stored(encode_marker(6), claiming(2)))
        session.received(stored(encode([([record("b")], 1, None, 0)], 6), after(1, 7)))
        assert (await session.pack_at(5, 1)).end == 6
        with pytest.raises(LogDamagedError, match=r"entry 7:8 is of term 1; .*: 2 or"):
            await session.pack_at(6, 1)

    asyncio.run(main())


def stored(payload: bytes, sequence_id: int) -> Entry:
    """An entry as a reader gives it."""
    entry = SimpleNamespace(
        payload=memoryview(payload),
        sequence_id=sequence_id,
        position=Position(7, sequence_id & 0xFF),
    )
    return cast("Entry", entry)


def test_who_waits_for_a_pack_is_told_when_the_partition_closes() -> None:
    async def main() -> None:
        session = Session(cast("PulsarPartition", Named()), 5, 1000)
        session.reader = cast("Reader", Named())
        waiting = asyncio.ensure_future(session.pack_at(5, 60))
        await asyncio.sleep(0)
        await session.close()
        with pytest.raises(LogUnavailableError, match="orders-partition-0 was closed"):
            await waiting

    asyncio.run(main())


class Named:
    """What a session needs of a partition and of a reader that brings nothing."""

    full_name = "orders-partition-0"
    converter = None

    def __init__(self) -> None:
        self.positions = Positions(4)

    def more(self, entries: int) -> None:
        assert entries > 0

    async def close(self) -> None:
        pass


def test_a_cold_read_is_fast(pulsar: Pulsar, pulsar_namespace: str) -> None:
    """Two hundred packs of a thousand: slower than this, nothing runs ahead."""

    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            one = record("x" * 96)
            for _ in range(20):
                await asyncio.gather(
                    *[begin(partition, *[one] * 1000) for _ in range(10)]
                )
            began = time.monotonic()
            offset = 0
            while offset < partition.end:
                chunk = await partition.read(offset, 1000, 1 << 20)
                offset = chunk.next_offset
            assert time.monotonic() - began < 30

    asyncio.run(main())
