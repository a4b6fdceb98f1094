"""When a state's topic is compacted, and that a Pulsar that refuses is survived."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from storage.pulsar.admin import Admin
from storage.pulsar.client import PulsarClient
from storage.pulsar.state_compaction import Compaction
from storage.pulsar.state_replica import Facts
from storage.pulsar.state_term import Term
from tests.contracts.state import ignore, until
from tests.system.process import free_ports

TOPIC = "persistent://public/default/__ropeway_state-broker-0"


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
