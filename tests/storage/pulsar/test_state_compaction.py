"""Compaction of a state: when, what it keeps, and that a refusal is survived."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import structlog

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.state import state_topic
from ropeway.storage.pulsar.state_compaction import Compaction
from ropeway.storage.pulsar.state_replica import Facts
from ropeway.storage.pulsar.state_term import Term
from tests.contracts.state import ignore, until
from tests.storage.pulsar.states import (
    cluster,
    compacted,
    horizon,
    until_compacted,
)
from tests.system.process import free_ports

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

server = pytest.mark.server
jvm = pytest.mark.jvm
TOPIC = "persistent://public/default/__ropeway_state-broker-0"


@pytest.fixture
def topic(pulsar_namespace: str) -> str:
    return state_topic(pulsar_namespace, "broker-0")


@pytest.mark.parametrize(
    ("records", "keys", "due"),
    [(100, 1, False), (101, 1, True), (400, 40, False), (401, 40, True)],
)
def test_it_is_due_above_the_least_and_above_ten_records_a_key(
    records: int, keys: int, due: bool
) -> None:
    facts = Facts()
    facts.apply({f"k{number}": "1" for number in range(keys)})
    facts.records = records
    admin = Admin("http://127.0.0.1:1")
    assert Compaction(admin, TOPIC, 100).is_due(facts) is due


def test_an_admin_that_does_not_answer_is_named_and_survived() -> None:
    async def main() -> None:
        [port] = free_ports(1)
        admin = Admin(f"http://127.0.0.1:{port}")
        client = PulsarClient(f"pulsar://127.0.0.1:{port}")
        term = Term(client, TOPIC, "a", 1, 3600, lambda error: ignore(str(error)))
        facts = Facts()
        facts.apply({"k": "1", "gone": 1, "just gone": 1 << 62})
        facts.records = 1000
        compaction = Compaction(admin, TOPIC, 100)
        with structlog.testing.capture_logs() as logged:
            compaction.begin(facts, term)
            await until(lambda: bool(logged))
        assert logged[0]["log_level"] == "warning"
        assert logged[0]["topic"] == TOPIC
        assert "does not answer" in logged[0]["reason"]
        assert not compaction.is_due(facts)
        assert term.ahead == {"gone": None}
        await compaction.close()
        await term.close()
        await client.close()
        await admin.close()

    asyncio.run(main())


@server
@jvm
def test_compaction_keeps_every_fact_and_nothing_else(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            follower = await one.open("b")
            await state.take_over()
            for number in range(20):
                for key in range(500):
                    state.put(f"k{key}", f"{number} of {key}")
                state.put(f"gone {number}", "1")
                await state.flush()
                state.put(f"gone {number}", None)
            await state.flush()
            before = state.items("")
            assert len(before) == 500
            await compacted(one)
            late = await one.open("c")
            assert late.items("") == before
            read = late._replica.facts.records
            assert read < 600, "compaction left what was replaced"
            assert len(late._replica.facts.marks) == 20
            state.put("k0", None)
            state.put("k1", "after")
            await state.flush()
            after = state.items("")
            for node in (follower, late):
                await until(lambda node=node: node.get("k1") == "after")  # type: ignore[misc]
                assert node.items("") == after
            await state.close()
            await late.take_over()
            assert late.items("") == after
            await late.close()
            await follower.close()

    asyncio.run(main())


@server
@jvm
def test_a_leader_has_a_long_topic_compacted(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a", compact_after=1000)
            await state.take_over()
            await until_compacted(one)
            first = horizon(one)
            for number in range(30):
                for key in range(100):
                    state.put(f"k{key}", str(number))
                await state.flush()
            await until(lambda: horizon(one) != first)
            late = await one.open("b")
            assert late.items("") == state.items("")
            await late.close()
            await state.close()

    asyncio.run(main())


@server
@jvm
def test_facts_outlive_the_retention_of_the_namespace(
    pulsar: Pulsar, pulsar_namespace: str, topic: str
) -> None:
    keep = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    pulsar.admin("POST", f"namespaces/{pulsar_namespace}/retention", keep)

    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            facts = {f"k{number}": "v" * 1000 for number in range(100)}
            for key, value in facts.items():
                state.put(key, value)
            await state.close()
            # The ledger is closed, and nobody reads the topic: now it would go.
            path = topic.removeprefix("persistent://")
            await asyncio.to_thread(pulsar.admin, "PUT", f"persistent/{path}/unload")
            again = await one.open("a")
            assert dict(again.items("")) == facts
            await again.take_over()
            again.put("k0", "1")
            await again.flush()
            await compacted(one)
            await again.close()
            await asyncio.to_thread(pulsar.admin, "PUT", f"persistent/{path}/unload")
            last = await one.open("a")
            assert dict(last.items("")) == facts | {"k0": "1"}
            await last.close()

    asyncio.run(main())


@server
@jvm
def test_marks_of_deletion_are_forgotten_when_they_are_old(
    pulsar: Pulsar, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            state.put("k", "1")
            state.put("gone", "1")
            await state.flush()
            state.put("gone", None)
            await state.flush()
            assert list(state._replica.facts.marks) == ["gone"]
            await state.give_up()
            monkeypatch.setattr(
                "ropeway.storage.pulsar.state_compaction.MARKS_KEPT_MS", -1
            )
            await state.take_over()
            await state.flush()
            assert state._replica.facts.marks == {}
            await compacted(one)
            late = await one.open("b")
            assert late.items("") == [("k", "1")]
            assert late._replica.facts.marks == {}
            await late.close()
            await state.close()

    asyncio.run(main())
