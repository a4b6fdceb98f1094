"""Partitions against a model: any mix of appends, reads, restarts and expiry."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropeway.storage.api import Filter, NoSuchPartitionError
from ropeway.storage.file import FileLogSettings, open_log, verify
from ropeway.storage.file.file_config import BLOCK_BYTES
from tests.contracts.log import TOPIC, begin, read_all, record, texts
from tests.storage.file.damage import places

PARTITIONS = 3

append = st.tuples(
    st.just("append"),
    st.integers(0, PARTITIONS - 1),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9000)), min_size=1, max_size=5
    ),
)
read = st.tuples(
    st.just("read"),
    st.integers(0, PARTITIONS - 1),
    st.integers(0, 30),
    st.integers(1, 9),
    st.integers(0, 20_000),
)
step = st.one_of(
    append, append, append, read, st.sampled_from([("reopen",), ("expire",), ("tick",)])
)


@settings(max_examples=30, deadline=None)
@given(st.lists(step, max_size=25), st.sampled_from(["async", "sync"]))
def test_a_log_is_a_list_for_each_partition(steps, flush) -> None:
    async def main(directory: Path) -> None:
        options = FileLogSettings(
            flush=flush,
            segment_bytes=1 << 16,
            tail_bytes=20_000,
            retention_bytes=100_000,
            open_files=2,
        )
        log = open_log(directory, options)
        await log.create(TOPIC, range(PARTITIONS))
        model: list[list[tuple[str, int]]] = [[] for _ in range(PARTITIONS)]
        waiting: list[asyncio.Future[int]] = []
        time_ms = 1000
        for what, *arguments in steps:
            match what, arguments:
                case "append", [number, sizes]:
                    time_ms += 10
                    base = len(model[number])
                    words = [
                        (f"{base + i}:{'x' * size}", tag)
                        for i, (tag, size) in enumerate(sizes)
                    ]
                    partition = log.partition(TOPIC, number)
                    assert partition.next_offset == base
                    records = [
                        record(w, tag, [f"{number}-{base + i}", "all"])
                        for i, (w, tag) in enumerate(words)
                    ]
                    waiting.append(begin(partition, *records, store_ms=time_ms))
                    model[number] += words
                case "read", [number, offset, count, size]:
                    partition = log.partition(TOPIC, number)
                    chunk = await partition.read(offset, count, size)
                    start = max(offset, partition.first)
                    expected = [w for w, _ in model[number][start : partition.end]]
                    found = texts(chunk)
                    assert found == expected[: len(found)]
                    assert len(found) <= count
                    assert bool(found) == (offset < partition.end and bool(expected))
                    assert len(found) <= 1 or sum(4 + len(w) for w in found) <= size
                case "reopen", _:
                    await log.close()
                    log = open_log(directory, options)
                case "expire", _:
                    await log.expire(0)
                case _:
                    await asyncio.sleep(0)
        await log.flush()
        await asyncio.gather(*waiting)
        for number, words in enumerate(model):
            partition = log.partition(TOPIC, number)
            assert partition.end == partition.next_offset == len(words)
            kept = words[partition.first :]
            assert await read_all(partition) == [w for w, _ in kept]
            for tag in range(4):
                found = await read_all(partition, 0, Filter(tag_hashes={tag}))
                assert found == [w for w, its in kept if its == tag]
            for offset in {partition.first, partition.end - 1} if kept else ():
                found = await log.query(TOPIC, f"{number}-{offset}", 0, time_ms, 9)
                assert [one.offset for one in found] == [offset]
        everything = await log.query(TOPIC, "all", 0, time_ms, 10_000)
        alive = [log.partition(TOPIC, number) for number in range(PARTITIONS)]
        assert len(everything) == sum(one.end - one.first for one in alive)
        await log.close()
        assert verify(directory).problems == []

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory)))


def test_behind_the_last_record_nothing_is_located(tmp_path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        await log.ready(TOPIC)
        partition = log.partition(TOPIC, 0)
        locate = partial(partition.locate, wanted=1, warm=None)
        assert locate(0) is None
        await begin(partition, record("0"), record("1"))
        await log.flush()
        assert locate(1)[0] == 1
        assert locate(2) is None
        await log.close()

    asyncio.run(main())


def test_what_was_deleted_says_so_whatever_is_asked(tmp_path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
        await log.create(TOPIC, [0])
        await log.ready(TOPIC)
        partition = log.partition(TOPIC, 0)
        await begin(partition, record("0"))
        await log.delete(TOPIC)
        for asked in (partition.offset_at(0), partition.store_time(0)):
            with pytest.raises(NoSuchPartitionError):
                await asked
        with pytest.raises(NoSuchPartitionError):
            partition.watch(lambda: None)
        with pytest.raises(NoSuchPartitionError):
            await log.ready("never made")
        await log.close()

    asyncio.run(main())


def test_what_comes_at_once_is_written_in_blocks_of_a_bounded_size(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 24))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        some = [record("x" * (BLOCK_BYTES // 2)) for _ in range(4)]
        await asyncio.gather(*[begin(partition, one) for one in some])
        await log.close()

    asyncio.run(main())
    (path,) = tmp_path.glob("*.log")
    sizes = [after - at for at, after in pairwise(places(path))]
    assert max(sizes) < 2 * BLOCK_BYTES
