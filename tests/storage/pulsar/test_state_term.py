"""A leader's term on a real Pulsar: what is ahead of the topic, parts, the lease."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.errors import FencedError, PulsarError
from ropeway.storage.pulsar.state import state_topic
from ropeway.storage.pulsar.state_replica import Replica
from ropeway.storage.pulsar.state_term import KEYS_AT_ONCE, TERM_SHIFT, Term
from tests.contracts.state import until
from tests.storage.pulsar.states import Cluster, cluster

if TYPE_CHECKING:
    from ropeway.storage.pulsar.entry import Entry
    from ropeway.storage.pulsar.state_entry import Change
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture
def topic(pulsar_namespace: str) -> str:
    return state_topic(pulsar_namespace, "broker-0")


class Node:
    """A term, and a replica that reads back what it wrote."""

    def __init__(self, one: Cluster, lease_s: float = 1.0) -> None:
        client = one.client()
        self.lost: list[PulsarError] = []
        self.read: list[Entry] = []
        self.term = Term(client, one.topic, "a", lease_s, 0.01, self.lost.append)
        self.replica = Replica(client, one.topic, self._claim, lambda *_: None)

    def _claim(self, entry: Entry) -> dict[str, Change] | None:
        self.read.append(entry)
        if entry.properties["ropeway-term"] != self.term.id:
            return None
        return self.term.landed(entry)

    async def open(self) -> None:
        await self.replica.open()
        await self.term.open(self.replica.newest_sequence_id)

    async def close(self) -> None:
        await self.term.close()
        await self.replica.close()


def test_a_put_is_ahead_until_its_last_value_was_read_back(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            node = Node(one)
            await node.open()
            # Equal values are one object here: whose put it was must not be mixed up.
            for value in ("1", "2", "1"):
                node.term.put("k", value)
                node.term.put(value, value)
                flush = asyncio.create_task(node.term.flush())
                await asyncio.sleep(0)
            # The three flushes have sent what there is, and wait.
            for _ in range(10):
                await asyncio.sleep(0)
            node.term.put("k", "3")
            node.term.put("l", 77)
            # The other keys as well, unless Pulsar was very quick.
            assert {"k": "3", "l": 77}.items() <= node.term.ahead.items()
            values = node.replica.facts.values
            while not flush.done() or node.term.ahead:
                assert node.term.ahead.get("k", values.get("k")) == "3"
                await asyncio.sleep(0)
            assert values == {"k": "3", "1": "1", "2": "2"}
            await node.close()

    asyncio.run(main())


def test_many_puts_go_out_in_parts(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            node = Node(one)
            await node.open()
            facts = {f"k{number}": str(number) for number in range(3 * KEYS_AT_ONCE)}
            node.read.clear()
            for key, value in facts.items():
                node.term.put(key, value)
            await node.term.flush()
            assert [entry.num_messages for entry in node.read] == [KEYS_AT_ONCE] * 3
            assert node.replica.facts.values == facts
            # By the timer, too.
            for key in facts:
                node.term.put(key, "timer")
            await until(lambda: not node.term.ahead)
            assert set(node.replica.facts.values.values()) == {"timer"}
            assert len(node.read) == 6
            await node.close()

    asyncio.run(main())


def test_a_lease_counts_from_when_it_was_asked_for(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            node = Node(one, lease_s=1)
            await node.open()
            term, producer = node.term, node.term._producer
            assert producer is not None
            answer = asyncio.Event()
            asked_s: list[float] = []
            held_until_s: list[float] = []
            confirm = producer.confirm

            async def slow() -> None:
                """Confirm, and answer late."""
                held_until_s.append(term.held_until_s)
                asked_s.append(time.monotonic())
                await confirm()
                await answer.wait()

            producer.confirm = slow  # type: ignore[method-assign]
            await until(lambda: len(asked_s) == 1)
            await until(lambda: time.monotonic() > term.held_until_s)
            answer.set()
            await until(lambda: len(asked_s) == 2)
            assert asked_s[0] + 0.5 < held_until_s[1] <= asked_s[0] + 1
            await until(lambda: term.held_until_s > time.monotonic())
            await node.close()
            assert term.held_until_s == 0
            assert node.lost == []

    asyncio.run(main())


def test_each_term_numbers_its_entries_above_all_before(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            nodes = [Node(one) for _ in range(3)]
            for node in nodes:
                await node.open()
                node.term.put("k", "1")
                await node.term.flush()
            read = nodes[-1].read
            begins = [node.term.begins_at for node in nodes]
            assert begins == [number << TERM_SHIFT for number in range(3)]
            numbers = [entry.sequence_id for entry in read]
            assert numbers == [
                begin + more for begin in begins if begin is not None for more in (0, 1)
            ]
            await until(lambda: all(len(node.lost) == 1 for node in nodes[:2]))
            assert isinstance(nodes[0].lost[0], FencedError)
            with pytest.raises(FencedError):
                await nodes[0].term.flush()
            for node in nodes:
                await node.close()
            assert nodes[2].lost == []

    asyncio.run(main())


def test_who_gives_up_holds_no_lease_and_all_that_was_put_is_stored(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            node = Node(one)
            await node.open()
            await until(lambda: node.term.held_until_s > time.monotonic())
            node.term.put("k", "1")
            await node.term.give_up()
            assert node.term.held_until_s == 0
            assert node.term.ahead == {}
            assert node.lost == []
            await node.close()
            replica = Replica(one.client(), topic, lambda _: None, lambda *_: None)
            await replica.open()
            assert replica.facts.values == {"k": "1"}
            assert replica.leader is not None
            assert replica.leader.ended
            await replica.close()

    asyncio.run(main())


def test_a_term_that_was_ended_writes_nothing_more(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            await one.admin.create_plain(topic)
            node = Node(one)
            await node.open()
            read = len(node.read)
            node.term.put("k", "1")
            error = FencedError("a test's own")
            node.term.end(error)
            node.term.end(error)
            assert node.lost == [error]
            assert node.term.held_until_s == 0
            node.term.put("k", "2")
            with pytest.raises(FencedError):
                await node.term.flush()
            await node.term.close()
            other = Node(one)
            await other.open()
            assert other.replica.facts.values == {}
            assert len(other.read) == read + 1
            await other.close()
            await node.close()

    asyncio.run(main())
