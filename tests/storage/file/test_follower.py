"""A log is followed in the order of writing, as far as its disk has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogDamagedError
from ropeway.storage.file import FileLogSettings, follower, open_log
from ropeway.storage.replication import ENTRY, Stretch
from tests.contracts.log import TOPIC, begin, record

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.file import FileLog

SMALL = FileLogSettings(segment_bytes=1 << 16, flush_interval_ms=60_000)


async def followed(log: FileLog, max_bytes: int = 1 << 20) -> dict[tuple, list[tuple]]:
    """All records by partition: offset, text, tag, store time, keys' hashes."""
    found: dict[tuple, list[tuple]] = {}
    position = 0
    while (stretch := await log.follow(position, max_bytes)).position != position:
        assert stretch.written_ms or not stretch.runs
        for run in stretch.runs:
            keys = memoryview(run.keys).cast("Q").tolist()
            at = 0
            for number, (_, size, tag, ms) in enumerate(ENTRY.iter_unpack(run.entries)):
                text = bytes(run.data[at + 4 : at + size]).decode()
                offset = run.base_offset + number
                hashes = sum(key & 0xFFFFFFFF == offset for key in keys)
                found.setdefault((run.topic, run.number, run.identity), []).append(
                    (offset, text, tag, ms, hashes)
                )
                at += size
            assert at == len(run.data)
        position = stretch.position
    return found


def identity(log: FileLog, topic: str, number: int) -> tuple:
    return topic, number, log.identity(topic, number)


@pytest.mark.parametrize("max_bytes", [1, 1000, 1 << 20])
def test_every_record_comes_once_with_tag_time_and_keys(
    tmp_path: Path, max_bytes
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        await log.create(TOPIC, [0, 1])
        await log.create("other", [0])
        partitions = [
            *(log.partition(TOPIC, 0), log.partition(TOPIC, 1)),
            log.partition("other", 0),
        ]
        for at in range(60):
            await asyncio.gather(
                *(
                    begin(one, record(f"{at}" * 300, at, ["k"] * (at % 3)), store_ms=at)
                    for one in partitions[: 1 + at % 3]
                )
            )
        await log.flush()
        found = await followed(log, max_bytes)
        assert found.keys() == {
            identity(log, one.topic, one.number) for one in partitions
        }
        for nth, one in enumerate(partitions):
            wanted = [at for at in range(60) if at % 3 >= nth]
            assert found[identity(log, one.topic, one.number)] == [
                (offset, f"{at}" * 300, at, at, at % 3)
                for offset, at in enumerate(wanted)
            ]
        await log.close()

    asyncio.run(main())


def test_what_is_not_on_the_disk_does_not_come(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("a"))
        assert await followed(log) == {}
        await log.flush()
        assert len(await followed(log)) == 1
        assert log.written_to == (await log.follow(0, 1 << 20)).position
        await log.close()

    asyncio.run(main())


def test_what_was_dropped_or_deleted_is_passed_over(tmp_path: Path) -> None:
    async def main() -> None:
        kept = FileLogSettings(segment_bytes=1 << 16, retention_bytes=1 << 16)
        log = open_log(tmp_path, kept)
        await log.create(TOPIC, [0])
        await log.create("doomed", [0])
        partition = log.partition(TOPIC, 0)
        old = log.identity("doomed", 0)
        for at in range(4):
            await begin(log.partition("doomed", 0), record("x"))
            await begin(partition, record(f"{at}" * 30_000))
        await log.flush()
        await log.delete("doomed")
        await log.create("doomed", [0])
        assert log.identity("doomed", 0) != old
        await log.expire(0)
        (records,) = (await followed(log)).values()
        assert [offset for offset, *_ in records] == [*range(partition.first, 4)]
        assert partition.first > 0
        await log.close()

    asyncio.run(main())


def test_nothing_is_dropped_from_where_it_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        await log.create(TOPIC, [0])
        for _ in range(6):
            await begin(log.partition(TOPIC, 0), record("x" * 30_000))
        await log.flush()
        kept_from = (await log.follow(0, 1)).position
        await log.expire(1 << 50, kept_from)
        assert log.partition(TOPIC, 0).first == 0
        await log.expire(1 << 50, log.written_to)
        assert log.partition(TOPIC, 0).first > 0
        await log.close()

    asyncio.run(main())


def test_damage_is_not_copied(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        await log.create(TOPIC, [0])
        await begin(log.partition(TOPIC, 0), record("one coffee"))
        await log.flush()
        path = tmp_path / f"{0:020}.log"
        with path.open("r+b") as file:
            file.seek(80)
            file.write(b"!")
        with pytest.raises(LogDamagedError, match=r"place 0: no whole block there"):
            await log.follow(0, 1 << 20)
        await log.close()

    asyncio.run(main())


def test_an_identity_is_the_lower_half_of_the_logs_id_and_the_ordinal() -> None:
    assert follower.identity(5, 7) == 5 << 32 | 7
    assert follower.identity(9 << 32 | 5, 7) == 5 << 32 | 7
    assert follower.identity(6, 7) != follower.identity(5, 7)


def test_where_nothing_is_durable_yet_a_stretch_is_empty(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SMALL)
        for position in (0, 1 << 40):
            assert await log.follow(position, 1000) == Stretch(position, 0, [])
        await log.close()

    asyncio.run(main())
