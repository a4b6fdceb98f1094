"""How appends end, and those that no message of Pulsar can carry."""

from __future__ import annotations

from structlog.testing import capture_logs

from ropeway.storage.api import OutcomeUnknownError
from ropeway.storage.pulsar.pack import RECORD_BYTES
from tests.remoting import looped
from tests.storage.pulsar.test_appender import Way, tick


@looped
async def test_a_message_is_filled_to_its_last_byte():
    body = b"x" * (3000 - 4 - RECORD_BYTES)
    for largest, counts in ((6000, [2, 2, 1]), (5999, [1] * 5)):
        way = Way(largest=largest, pack_bytes=4096, packs_in_flight=9)
        way.append("large", *[body] * 5)
        await tick()
        assert [count for _, _, count in way.broker.sent] == counts
        way.broker.acknowledge(len(counts))
        assert way.told == [("large", 0, None)]


@looped
async def test_what_was_sent_in_part_is_answered_once_and_nothing_fails():
    way = Way(largest=2000, pack_bytes=4096, packs_in_flight=1)
    way.append("large", *[b"x" * 1500] * 3)
    await tick()
    with capture_logs() as logs:
        way.appender.give_up()
    ((name, offset, error),) = way.told
    assert (name, offset) == ("large", -1)
    assert isinstance(error, OutcomeUnknownError)
    assert [one["event"] for one in logs] == ["appends of unknown outcome"]


@looped
async def test_a_receipt_that_comes_after_the_end_is_nothing():
    way = Way()
    way.append("a", b"1")
    await tick()
    way.appender.fail("another node has it")
    way.broker.acknowledge()
    ((_, _, error),) = way.told
    assert isinstance(error, OutcomeUnknownError)
    assert (way.end, way.traffic.waiting_bytes) == (0, 0)
