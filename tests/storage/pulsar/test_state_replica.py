"""What a state's topic says: behind compaction, and again after a reader was lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar import state_replica
from ropeway.storage.pulsar.errors import EntryError, PulsarError
from ropeway.storage.pulsar.state import state_topic
from ropeway.storage.pulsar.state_entry import LEADER, Leader, decode, encode_leader
from ropeway.storage.pulsar.state_replica import Facts, Replica
from tests.contracts.state import until
from tests.storage.pulsar.states import cluster, compacted

if TYPE_CHECKING:
    from ropeway.storage.pulsar.entry import Entry
    from tests.system.pulsar import Pulsar

TIMEOUT_S = 60
server = pytest.mark.server
jvm = pytest.mark.jvm


@pytest.fixture
def topic(pulsar_namespace: str) -> str:
    return state_topic(pulsar_namespace, "broker-0")


def test_facts_take_changes_over_one_by_one() -> None:
    facts = Facts()
    leader = Leader("a", "01", 1)
    facts.apply({"k": "1", "l": "1", LEADER: encode_leader(leader)})
    assert facts.values == {"k": "1", "l": "1"}
    assert facts.leader == leader
    facts.apply({"k": 77, "l": None})
    assert (facts.values, facts.marks) == ({}, {"k": 77})
    facts.apply({"k": "2"})
    assert (facts.values, facts.marks) == ({"k": "2"}, {})
    facts.apply({"k": 78})
    facts.apply({"k": None})
    assert (facts.values, facts.marks) == ({}, {})
    assert facts.records == 8


def test_a_damaged_leader_leaves_the_other_facts() -> None:
    facts = Facts()
    with pytest.raises(EntryError):
        facts.apply({"k": "1", LEADER: "nobody"})
    assert facts.values == {"k": "1"}
    assert facts.leader is None


@server
@jvm
def test_a_reader_that_compaction_overtook_ends_with_the_same_facts(
    pulsar: Pulsar, topic: str
) -> None:
    """It has read a key that was deleted and compacted before it read on."""

    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            state.put("gone", "1")
            state.put("k", "1")
            await state.flush()
            late = Facts()

            def take(entry: Entry) -> None:
                late.apply(decode(entry))

            # One permit is for one entry; the broker sends no more than that one.
            reader = await one.client().reader(
                *(topic, "earliest"),
                compacted=True,
                received=take,
                lost=print,
                permits=1,
            )
            reader.more(1)
            await until(lambda: "gone" in late.values)
            state.put("gone", None)
            for number in range(500):
                state.put("k", str(number))
                await state.flush()
            await compacted(one)
            state.put("end", "1")
            await state.flush()
            reader.more(1000)
            await until(lambda: "end" in late.values)
            assert late.values == {"k": "499", "end": "1"}
            assert late.records < 500, "the reader was ahead of compaction"
            await state.close()

    asyncio.run(main())


@server
@jvm
def test_more_is_read_than_the_broker_may_send_ahead(
    pulsar: Pulsar, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_replica, "AHEAD", 2)

    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            for number in range(8):
                state.put("k", str(number))
                await state.flush()
            replica = Replica(one.client(), topic, lambda _: None, lambda *_: None)
            async with asyncio.timeout(TIMEOUT_S):
                await replica.open()
            assert replica.facts.values == {"k": "7"}
            await replica.close()
            await state.close()

    asyncio.run(main())


@server
@jvm
def test_a_replica_reads_all_again_when_its_reader_is_lost(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            state.put("k", "1")
            state.put("gone", "1")
            await state.flush()
            told: list[tuple[str, str | None]] = []
            replica = Replica(
                one.client(), topic, lambda _: None, lambda *change: told.append(change)
            )
            await replica.open()
            assert replica.facts.values == {"k": "1", "gone": "1"}
            told.clear()
            assert replica._reader is not None
            await replica._reader.close()
            state.put("k", "2")
            state.put("gone", None)
            await state.flush()
            replica._lost(PulsarError("a test's own"))
            assert not replica.is_settled
            assert replica.facts.values == {"k": "1", "gone": "1"}
            await replica.settled()
            assert replica.facts.values == {"k": "2"}
            assert sorted(told[1:]) == [("gone", None), ("k", "2")]
            assert told[0][0] == LEADER
            await replica.close()
            await state.close()

    asyncio.run(main())


@server
@jvm
def test_a_leader_goes_on_while_its_replica_reads_all_again(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            reasons: list[str] = []
            state = await one.open("a", reasons.append)
            await state.take_over()
            for number in range(20):
                state.put("n", str(number))
                state.put(f"k{number}", "1")
                await state.flush()
                if number % 5 == 0:
                    replica = state._replica
                    assert replica._reader is not None
                    await replica._reader.close()
                    replica._lost(PulsarError("a test's own"))
                state.put("n", f"{number} and more")
                assert state.get("n") == f"{number} and more"
            await state.flush()
            assert len(state.items("k")) == 20
            assert state.get("n") == "19 and more"
            assert reasons == []
            await state.close()

    asyncio.run(main())
