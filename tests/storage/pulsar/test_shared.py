"""Partitions that native clients write to, too, on a real Pulsar."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.contracts.log import LogContract
from tests.storage.pulsar.logs import settings_for
from tests.storage.pulsar.sharing import SharedLog, Verbatim, open_shared_log
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

numbers = itertools.count(1)
pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A Pulsar that is set up to tell indexes, and nothing else of brokers."""
    server = Pulsar(
        tmp_path_factory.mktemp("counting"),
        settings={
            "brokerEntryMetadataInterceptors": "org.apache.pulsar.common.intercept."
            "AppendIndexMetadataInterceptor"
        },
    )
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
class TestSharedLog(LogContract):
    @pytest.fixture
    def open_log(
        self, counting: Pulsar, tail_bytes: int
    ) -> Callable[[], Awaitable[SharedLog]]:
        namespace = f"public/contract-{next(numbers)}"
        settings = settings_for(counting, namespace, tail_bytes=tail_bytes)
        converter = Verbatim()

        async def again() -> SharedLog:
            return await open_shared_log(settings, converter)

        return again
