"""The log on a real Pulsar meets the contract of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.pulsar import PulsarLog, PulsarLogSettings, open_log
from tests.contracts.log import LogContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
class TestPulsarLog(LogContract):
    @pytest.fixture
    def open_log(
        self, pulsar: Pulsar, pulsar_namespace: str, tail_bytes: int
    ) -> Callable[[], Awaitable[PulsarLog]]:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=tail_bytes)

        async def again() -> PulsarLog:
            return await open_log(settings, prepare=True)

        return again


def settings_for(pulsar: Pulsar, namespace: str, **others: object) -> PulsarLogSettings:
    """Settings of a log in a test's own namespace."""
    tenant, space = namespace.split("/")
    return PulsarLogSettings(
        service_url=pulsar.service_url,
        admin_url=pulsar.admin_url,
        tenant=tenant,
        namespace=space,
        **others,  # type: ignore[arg-type]
    )
