"""The log on a real Pulsar meets the contract of logs, and looks right from outside."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import (
    LogLimitError,
    LogUnavailableError,
    NoSuchPartitionError,
    NotReadyError,
)
from ropeway.storage.pulsar import PulsarLog, open_log
from tests.contracts.log import (
    LogContract,
    begin,
    opened,
    read_all,
    record,
    texts,
)
from tests.contracts.state import ignore
from tests.storage.pulsar.logs import log_of, settings_for, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]

numbers = itertools.count(1)


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
class TestPulsarLog(LogContract):
    @pytest.fixture
    def open_log(
        self, pulsar: Pulsar, pulsar_namespace: str, tail_bytes: int
    ) -> Callable[[], Awaitable[PulsarLog]]:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=tail_bytes)

        async def again() -> PulsarLog:
            return await open_log(settings, prepare=True)

        return again


@pytest.mark.slow
class TestPulsarLogOnNewerPulsar(LogContract):
    @pytest.fixture
    def open_log(self, newer_pulsar: Pulsar) -> Callable[[], Awaitable[PulsarLog]]:
        namespace = f"public/newer-{next(numbers)}"
        settings = settings_for(newer_pulsar, namespace, tail_bytes=0)

        async def again() -> PulsarLog:
            return await open_log(settings, prepare=True)

        return again

    def test_names_of_rocketmq_are_taken(
        self, open_log: Callable[[], Awaitable[PulsarLog]]
    ) -> None:
        async def main() -> None:
            log = await open_log()
            await names_are_taken(log)
            await log.close()

        asyncio.run(main())

    def test_the_broker_tells_where_an_offset_is(
        self, open_log: Callable[[], Awaitable[PulsarLog]]
    ) -> None:
        async def main() -> None:
            log = await open_log()
            await log.create("orders", [0])
            partition = await opened(log, 0, "orders")
            for number in range(60):
                await begin(partition, record(f"{number}.0"), record(f"{number}.1"))
            await log.close()
            log = await open_log()
            partition = await opened(log, 0, "orders")
            chunk = await partition.read(61, 1, 99)
            assert texts(chunk) == ["30.1"]
            # Nothing was read before the pack that it named, which is one marker off.
            before = partition.positions.floor(59)
            assert before is not None
            assert before.offset == 58
            assert partition.positions.floor(57) is None
            await log.close()

        asyncio.run(main())


async def names_are_taken(log: PulsarLog) -> None:
    """Retry and dead-letter topics, and such as Pulsar would take for a partition."""
    topics = ["%RETRY%billing", "%DLQ%billing", "a-partition-1", "a|b", "a_b-C"]
    for topic in topics:
        await log.create(topic, [0])
        partition = await opened(log, 0, topic)
        await begin(partition, record(topic))
        assert await read_all(partition) == [topic]
    await log._catalog.load(log._catalog.spaces)
    assert set(log.topics()) == set(topics)
    for topic in topics:
        await log.delete(topic)
    assert log.topics() == {}


def test_names_of_rocketmq_are_taken(pulsar: Pulsar, pulsar_namespace: str) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await names_are_taken(log)

    asyncio.run(main())


def test_topics_of_several_namespaces_are_kept_apart(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        own, other = pulsar_namespace.split("/")[1], f"{pulsar_namespace}-blue"
        blue = other.split("/")[1]
        settings = settings_for(pulsar, pulsar_namespace, namespaces=(other,))
        async with log_of(settings) as log:
            for topic in ("orders", f"public|{blue}%orders"):
                await log.create(topic, [0])
                await begin(await opened(log, 0, topic), record(topic))
            long = f"public|{own}%orders"
            with pytest.raises(LogLimitError, match="is called orders here"):
                await log.create(long, [0])
            with pytest.raises(LogUnavailableError, match="`namespaces` adds others"):
                await log.create("public|red%orders", [0])
        async with log_of(settings) as log:
            assert log.topics() == {
                "orders": frozenset({0}),
                f"public|{blue}%orders": frozenset({0}),
            }
            for topic in log.topics():
                assert await read_all(await opened(log, 0, topic)) == [topic]

    asyncio.run(main())


def test_pulsar_shows_a_partitioned_topic_whose_index_is_the_offset(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [0, 1])
            await log.create("orders", [2])
            partition = await opened(log, 2, "orders")
            await begin(partition, record("a"), record("b"))
            await begin(partition, record("c"))

    asyncio.run(main())
    topic = f"persistent/{pulsar_namespace}/orders"
    assert pulsar.admin("GET", f"{topic}/partitions")["partitions"] == 3
    stats = pulsar.admin("GET", f"{topic}-partition-2/internalStats")
    # Two packs behind the two markers that begin a term.
    assert stats["entriesAddedCounter"] == 4


def test_what_waits_for_pulsar_is_overdue_behind_its_time(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, wait_ms=100_000)
        async with log_of(settings) as log:
            await log.create("orders", [0])
            partition = await opened(log, 0, "orders")
            traffic = log._traffic
            # Pulsar was heard of a long time ago, but nothing is on its way.
            traffic.heard_at = time.monotonic() - 200
            assert log.overdue_ms() == 0
            sent = begin(partition, record("a"))
            await asyncio.sleep(0)  # with all that comes in one turn of the loop
            assert log.overdue_ms() == 0
            traffic.heard_at = time.monotonic() - 200
            assert 200_000 <= log.overdue_ms() < 2_000_000
            assert log.waiting_bytes()
            assert await sent == 0
            assert log.overdue_ms() == 0

    asyncio.run(main())


def test_a_log_that_is_released_gives_all_up_and_can_have_it_again(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [3])
            partitions = [log.partition("orders", number) for number in range(4)]
            await log.ready("orders")
            sent = [begin(one, record("a")) for one in partitions]
            await log.release()
            assert [await one for one in sent] == [0] * 4
            for one in partitions:
                with pytest.raises(NotReadyError):
                    one.read_now(0, 1, 1)
            path = f"persistent/{pulsar_namespace}/orders-partition-3/stats"
            stats = await asyncio.to_thread(pulsar.admin, "GET", path)
            assert stats["publishers"] == []
            await log.release()
            await log.ready("orders")
            assert [one.end for one in partitions] == [1] * 4
            assert await begin(partitions[2], record("b")) == 1

    asyncio.run(main())


def test_a_release_ends_openings_so_that_the_next_leader_is_not_fenced(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [19])
            partitions = [log.partition("orders", number) for number in range(20)]
            for one in partitions:
                one.watch(lambda: None)
            log.open_early()
            for fair_queue in range(4):
                opening = asyncio.ensure_future(log.ready("orders"))
                for _ in range(fair_queue + 1):
                    await asyncio.sleep(0)
                await log.release()
                with pytest.raises(LogUnavailableError, match="not opened any more"):
                    await opening
                assert [one.appender for one in partitions] == [None] * 20
            log.open_early()
            await until(lambda: all(one.appender for one in partitions))

    asyncio.run(main())


def test_nothing_works_before_a_topic_is_ready(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [0])
            partition = log.partition("orders", 0)
            partition.watch(print)
            for use in (
                lambda: partition.end,
                lambda: partition.first,
                lambda: partition.next_offset,
                lambda: begin(partition, record("a")),
                lambda: partition.read_now(0, 1, 1),
            ):
                with pytest.raises(NotReadyError, match="orders is not open yet"):
                    use()
            partition.unwatch(print)
            await asyncio.gather(*[log.ready("orders") for _ in range(3)])
            assert partition.end == 0
            with pytest.raises(NoSuchPartitionError):
                await log.ready("absent")

    asyncio.run(main())


def test_the_largest_messages_fit(pulsar: Pulsar, pulsar_namespace: str) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            await log.create("orders", [0])
            partition = await opened(log, 0, "orders")
            large = "x" * ((4 << 20) + 64 * 1024)
            await asyncio.gather(*[begin(partition, record(large)) for _ in range(3)])
            batch = [record(large[: 3 << 20]) for _ in range(4)]
            assert await begin(partition, *batch) == 3
            found = await read_all(partition)
            assert [len(text) for text in found] == [len(large)] * 3 + [3 << 20] * 4

    asyncio.run(main())


def test_a_topic_deleted_behind_our_back_is_gone_and_others_go_on(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            for topic in ("orders", "others"):
                await log.create(topic, [0])
                await begin(await opened(log, 0, topic), record("a"))
            old, other = log.partition("orders", 0), log.partition("others", 0)
            path = f"persistent/{pulsar_namespace}/orders/partitions?force=true"
            await asyncio.to_thread(pulsar.admin, "DELETE", path)
            await until(lambda: "orders" not in log.topics())
            for use in (
                lambda: begin(old, record("b")),
                lambda: old.read_now(0, 1, 1),
                lambda: log.partition("orders", 0),
            ):
                with pytest.raises(NoSuchPartitionError):
                    use()
            assert await begin(other, record("b")) == 1
            await log.create("orders", [0])
            new = await opened(log, 0, "orders")
            assert new is not old
            assert await begin(new, record("c")) == 0
            assert await read_all(new) == ["c"]

    asyncio.run(main())


def test_generations_of_a_topic_are_topics_of_their_own(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [0])
            old = await opened(log, 0, "orders")
            await begin(old, record("old"))
            await log.create("orders", [0, 1], generation=1)
            with pytest.raises(NoSuchPartitionError):
                await begin(old, record("lost"))
            new = await opened(log, 0, "orders")
            assert await begin(new, record("new")) == 0
            await log.delete("orders", 0)
            # Whoever was late does it once more.
            await log.delete("orders", 0)
            assert await begin(new, record("newer")) == 1
            assert log.topics() == {"orders": frozenset({0, 1})}
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [0, 1], generation=1)
            assert await read_all(await opened(log, 0, "orders")) == ["new", "newer"]
            await log.delete("orders", 1)
            assert pulsar.admin("GET", f"persistent/{pulsar_namespace}") == []

    asyncio.run(main())


def test_deleting_takes_partitions_that_nobody_opened(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create("orders", [0, 1, 2])
            await begin(await opened(log, 1, "orders"), record("a"))
            await log.delete("orders")
            await log.delete("never made")
            assert pulsar.admin("GET", f"persistent/{pulsar_namespace}") == []

    asyncio.run(main())


def test_partitions_open_by_use_and_early_where_they_are_in_use(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace)

    async def main() -> None:
        async with log_of(settings) as log, log_of(settings) as standby:
            await log.create("orders", range(5))
            partitions = [log.partition("orders", number) for number in range(5)]
            await log.ready("orders", (2,))
            assert [one.number for one in partitions if one.appender] == [2]
            await log.release()
            state = await log.open_state("b", "one", ignore)
            await state.take_over()
            await log.ready("orders", range(4))
            await state.flush()
            await standby.follow()
            await standby.create("orders", range(5))
            theirs = [standby.partition("orders", number) for number in range(5)]
            their_state = await standby.open_state("b", "two", ignore)
            await begin(partitions[2], record("a"))
            await until(lambda: "1" in dict(their_state.items("end/")).values())
            # One has grown, one is waited for, two were open, and one was never used.
            theirs[1].watch(lambda: None)
            await log.release()
            theirs[0].noted_end = 7  # As it was looked up when it led before.
            await their_state.take_over()
            await standby.lead()
            assert theirs[0].noted_end == -1
            standby.open_early()
            assert standby._ownership._early is not None
            await standby._ownership._early
            assert [one.number for one in theirs if one.appender] == [1, 2]
            assert await read_all(theirs[2]) == ["a"]
            await their_state.close()
            await state.close()

    asyncio.run(main())
