"""Where a queue ended at another broker is known to the broker that it came to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.other_brokers import OtherBrokers
from tests.contracts.log import opened
from tests.contracts.state import ignore
from tests.storage.pulsar.logs import log_of, settings_for
from tests.storage.pulsar.test_end_offsets import forgotten, key, leader_of, stored

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_a_queue_that_came_from_another_broker_goes_on_where_that_one_noted(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            await stored(log, "a", "b")
            await log.release()
            await state.flush()
        await forgotten(pulsar, pulsar_namespace)
        async with leader_of(
            pulsar, pulsar_namespace, broker="other", producer_name="p"
        ) as (log, state):
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (2, 2)
            # From here on it is this broker's to know.
            assert state.get(key(log)) == "2"

    asyncio.run(main())


def test_the_largest_end_counts_and_one_reading_serves_all_who_ask(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            for broker, end in (("a", "7"), ("b", "9"), ("ours", "99")):
                state = await log.open_state(broker, "n", ignore)
                await state.take_over()
                state.put("end/x/y/orders/0", end)
                state.put("offset/g/orders/0", "50")
                await state.close()
            elsewhere = OtherBrokers(
                log._client, log._admin, pulsar_namespace, state.topic
            )
            asked = [elsewhere.end("end/x/y/orders/0") for _ in range(20)]
            first = elsewhere.end("end/x/y/others/0")
            assert await asyncio.gather(*asked, first) == [9] * 20 + [None]
            reading = elsewhere._reading
            assert await elsewhere.end("offset/g/orders/0") is None
            assert elsewhere._reading is reading
            await elsewhere.close()

    asyncio.run(main())


def test_an_end_that_cannot_be_asked_for_is_not_taken_for_none(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            elsewhere = OtherBrokers(log._client, log._admin, "public/absent", "")
            for _ in range(2):
                with pytest.raises(LogUnavailableError, match="public/absent"):
                    await elsewhere.end("end/x/y/orders/0")

    asyncio.run(main())
