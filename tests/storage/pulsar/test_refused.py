"""What Pulsar refuses is answered soon, and what it is late with has its time."""

from __future__ import annotations

import asyncio
import re
import time
from types import SimpleNamespace
from typing import Any

from ropeway.storage.pulsar.appender import Traffic
from ropeway.storage.pulsar.backoff import FIRST_DELAY_S
from ropeway.storage.pulsar.commands import CloseProducer, OpenProducer, Send
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.upkeep import Upkeep
from tests.remoting import looped, until
from tests.storage.pulsar.producing import sending


class Way:
    """Appends that have been on their way for an hour."""

    def __init__(self, *, is_shut_out: bool) -> None:
        self.is_shut_out = is_shut_out
        self.oldest_at = time.monotonic() - 3600
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1


class Readers:
    def __init__(self) -> None:
        self.looks = 0

    def close_idle(self, _now: float) -> None:
        self.looks += 1


@looped
async def test_a_send_that_pulsar_refuses_is_answered_before_its_client_gives_up():
    """Clients wait for 3 s; an outcome is unknown after 10 s by default."""
    refused: Any = Way(is_shut_out=True)
    late: Any = Way(is_shut_out=False)
    readers: Any = Readers()
    traffic = Traffic(1 << 20)
    traffic.appenders = {refused: None, late: None}
    settings = PulsarLogSettings(outcome_s=7200.0)

    async def nothing(_: Any) -> None:
        await asyncio.sleep(0)

    ownership: Any = SimpleNamespace(
        traffic=traffic, reopen=nothing, close_unused=lambda _: None
    )
    upkeep = Upkeep(settings, ownership, readers, list, nothing)
    try:
        await until(lambda: readers.looks)
    finally:
        await upkeep.close()
    assert (refused.given_up, late.given_up) == (readers.looks, 0)


@looped
async def test_a_broker_that_cannot_store_is_asked_ever_more_slowly_and_named():
    """As one whose bookies are full: it lets the producer in, and out at an entry."""
    async with sending() as one:
        usual = one.broker.answers[Send]
        one.broker.answers[Send] = lambda _, send: CloseProducer(send.producer_id, -1)
        producer = await one.open()
        assert not producer.is_shut_out
        assert producer.silence == "Pulsar did not answer in time"
        began_s = asyncio.get_running_loop().time()
        one.send(1)
        await one.broker.wait(OpenProducer, 6)
        # The second opening was at once; each of the next four waited twice as long.
        waited_s = asyncio.get_running_loop().time() - began_s
        assert waited_s >= 15 * FIRST_DELAY_S / 2
        assert producer.is_shut_out
        assert re.fullmatch(
            r"Pulsar closed the producer [456] times and stored nothing; its bookies "
            "may be too few, or their disks full",
            producer.silence,
        )
        one.broker.answers[Send] = usual
        await one.finished(1)
        assert (one.done, one.lost) == ([(1, Position(7, 0), None)], [])
        assert producer.silence == "Pulsar did not answer in time"
