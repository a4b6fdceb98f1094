"""Who does not own a partition reads what its owner stores, and harms nobody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import (
    LogDamagedError,
    LogUnavailableError,
    NoSuchPartitionError,
)
from ropeway.storage.pulsar.pack import encode_marker
from ropeway.storage.pulsar.terms import after, claiming
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import (
    entries,
    followed,
    log_of,
    settings_for,
    until,
    write,
)

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_a_follower_reads_what_is_stored_and_is_told_what_comes(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)
    told: list[int] = []

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await owner.create(TOPIC, [0])
            written = await opened(owner, 0)
            for text in "abc":
                await begin(written, record(text), store_ms=ord(text))
            seen = await followed(other)
            assert (seen.first, seen.end) == (0, 3)
            assert await read_all(seen) == ["a", "b", "c"]
            assert await seen.offset_at(ord("b")) == 1
            seen.watch(lambda: told.append(seen.end))
            await asyncio.gather(
                *(begin(written, record(str(one))) for one in range(50))
            )
            await until(lambda: told[-1:] == [53])
            assert told == sorted(set(told))
            assert seen.end == written.end == 53
            # From memory: a follower keeps the newest as an owner does.
            assert seen.read_now(50, 1, 1) is not None
            assert await read_all(seen) == await read_all(written)
            with pytest.raises(LogUnavailableError, match="another node's"):
                begin(seen, record("x"))
            # Two markers of one term: nobody else has opened it to write.
            path = f"persistent/{pulsar_namespace}/{TOPIC}-partition-0/stats"
            stats = await asyncio.to_thread(pulsar.admin, "GET", path)
            assert len(stats["publishers"]) == 1
            assert await begin(written, record("last")) == 53

    asyncio.run(main())


def test_followers_take_over_in_turn_and_go_on_where_the_owner_was(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as one, log_of(settings) as two:
            logs = [one, two]
            await one.create(TOPIC, [0])
            await opened(one, 0)
            await followed(two)
            for turn in range(4):
                owner, other = logs[turn % 2], logs[1 - turn % 2]
                seen = await opened(other, 0)
                assert await begin(owner.partition(TOPIC, 0), record("x")) == turn
                await until(lambda seen=seen, turn=turn: seen.end == turn + 1)  # type: ignore[misc]
                assert await read_all(seen) == ["x"] * (turn + 1)
                if turn % 2:
                    await owner.follow()
                # Otherwise the old owner does not know yet, and is fenced.
                await other.lead()
                await opened(other, 0)
                if not turn % 2:
                    await owner.follow()

    asyncio.run(main())


def test_what_only_an_owner_can_tell_is_not_guessed(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await other.follow()
            with pytest.raises(LogUnavailableError, match="has 0 partitions"):
                await other.create(TOPIC, [0])
            with pytest.raises(NoSuchPartitionError):
                other.partition(TOPIC, 0)
            await owner.create(TOPIC, [0])
            await other.create(TOPIC, [0])
            other.partition(TOPIC, 0)
            with pytest.raises(LogUnavailableError, match="only the node that owns"):
                await other.ready(TOPIC)
            assert await asyncio.to_thread(entries, pulsar, pulsar_namespace) == 0
            await begin(await opened(owner, 0), record("a"))
            assert await read_all(await opened(other, 0)) == ["a"]

    asyncio.run(main())


def test_an_owner_that_died_while_it_opened_leaves_the_end_where_it_was(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await owner.create(TOPIC, [0])
            await begin(await opened(owner, 0), record("a"), record("b"))
            await owner.release()
            await write(pulsar, pulsar_namespace, encode_marker(0), claiming(7))
            seen = await followed(other)
            assert (seen.end, await read_all(seen)) == (2, ["a", "b"])

    asyncio.run(main())


def test_a_follower_gives_up_what_cannot_be_and_looks_again(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await owner.create(TOPIC, [0])
            await begin(await opened(owner, 0), record("a"))
            await owner.release()
            seen = await followed(other)
            for sequence_id, marker in ((after(8, 5), 5), (after(9, 9), 3)):
                await write(
                    pulsar, pulsar_namespace, encode_marker(marker), sequence_id
                )
                await until(lambda: seen.appender is None)
                if marker == 5:
                    assert (await opened(other, 0)).end == 5
            with pytest.raises(LogDamagedError, match="stands for 9"):
                await other.ready(TOPIC)

    asyncio.run(main())


def test_a_topic_that_is_made_anew_is_followed_from_its_beginning(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await other.follow()
            for text in ("old", "new"):
                await owner.create(TOPIC, [0])
                await begin(await opened(owner, 0), record(text))
                await other.create(TOPIC, [0])
                seen = await opened(other, 0)
                assert await read_all(seen) == [text]
                await owner.delete(TOPIC)
                other.forget(TOPIC)
                with pytest.raises(NoSuchPartitionError):
                    seen.read_now(0, 1, 1)

    asyncio.run(main())


def test_what_nobody_reads_is_not_followed_for_long(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace, reader_idle_s=0.3)

    async def main() -> None:
        async with log_of(settings) as owner, log_of(settings) as other:
            await owner.create(TOPIC, [0])
            written = await opened(owner, 0)
            seen = await followed(other)
            await until(lambda: seen.appender is None)
            waited: list[int] = []
            seen.watch(lambda: waited.append(1))
            await opened(other, 0)
            for _ in range(4):
                await asyncio.sleep(settings.reader_idle_s)
            assert seen.appender is not None
            assert written.appender is not None
            await begin(written, record("a"))
            await until(lambda: bool(waited))

    asyncio.run(main())
