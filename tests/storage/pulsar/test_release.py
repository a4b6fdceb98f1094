"""A partition is given up in good order, and another owner goes on with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import NoSuchPartitionError
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_what_is_on_its_way_is_stored_and_another_owner_goes_on(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log, log_of(settings) as other:
            await log.create(TOPIC, [0, 1])
            given, kept = await opened(log, 0), await opened(log, 1)
            under_way = [begin(given, record(name)) for name in "abc"]
            await log.let_go(TOPIC, 0)
            assert [one.result() for one in under_way] == [0, 1, 2]
            with pytest.raises(NoSuchPartitionError):
                await begin(given, record("late"))
            await other.create(TOPIC, [0, 1])
            taken = await opened(other, 0)
            assert await read_all(taken) == ["a", "b", "c"]
            assert await begin(taken, record("d")) == 3
            # The other partition is as it was, and so is the taker's.
            assert await begin(kept, record("e")) == 0
            await log.let_go(TOPIC, 0)
            assert await begin(taken, record("f")) == 4
            # It may come back.
            await other.let_go(TOPIC, 0)
            again = await opened(log, 0)
            assert again is not given
            assert await begin(again, record("g")) == 5

    asyncio.run(main())
