"""A topic on Pulsar is not trimmed, and says why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnfitError
from ropeway.storage.trim_api import trimmable
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_it_is_refused_with_what_to_do_instead(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            await begin(partition, record("a"))
            with pytest.raises(LogUnfitError, match="namespaces set-retention"):
                await trimmable(log).trim(TOPIC, {0: 1}, dry_run=True)
            assert await read_all(partition) == ["a"]

    asyncio.run(main())
