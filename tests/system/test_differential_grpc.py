"""The same gRPC calls see the same on RocketMQ 5.5.0's proxy and on Ropeway."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.system.grpc_consuming import CONSUMING
from tests.system.grpc_differences import DIFFERENCES
from tests.system.grpc_lite import LITE
from tests.system.grpc_refusals import REFUSALS
from tests.system.grpc_scenarios import SENDING
from tests.system.grpc_side import Side
from tests.system.rocketmq import SMALL
from tests.system.rocketmq_proxy import RocketMQWithProxy
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.grpc_scenarios import Scenario
    from tests.system.grpc_side import Seen

pytestmark = [pytest.mark.server, pytest.mark.jvm, pytest.mark.slow]
SCENARIOS = [*SENDING, *CONSUMING, *REFUSALS, *LITE]
LITE_TOPICS = {
    **SMALL,
    "enableLmq": "true",
    "enableMultiDispatch": "true",
    # Not 10 s: so often it looks for what clients that are new have to get.
    "liteEventCheckInterval": "500",
}
"""A broker has none unless it is told so."""


class Pair(NamedTuple):
    """Both servers."""

    theirs: RocketMQWithProxy
    ours: Ropeway


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """RocketMQ with its proxy, and Ropeway; nobody makes a topic by sending to it."""
    pair = Pair(
        RocketMQWithProxy(
            tmp_path_factory.mktemp("rocketmq"), auto_create=False, settings=LITE_TOPICS
        ),
        Ropeway(
            tmp_path_factory.mktemp("ropeway"), auto_create=False, options=["--grpc"]
        ),
    )
    try:
        for server in pair:
            server.start()
        yield pair
    finally:
        for server in pair:
            server.kill()


def told(scenario: Scenario, server: RocketMQWithProxy | Ropeway) -> Seen:
    """What one of the servers tells."""
    endpoint = getattr(server, "endpoint", server.name_server)
    name_port = int(server.name_server.rpartition(":")[2])

    async def run() -> Seen:
        name = scenario.__name__
        async with Side(endpoint, server.broker_port, name_port, name) as side:
            return await scenario(side)

    return asyncio.run(run())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_a_call_sees_the_same_on_both_but_where_it_is_meant(
    scenario: Scenario, pair: Pair
) -> None:
    theirs, ours = (told(scenario, server) for server in pair)
    meant = DIFFERENCES.get(scenario.__name__, {})
    assert theirs == {**ours, **{what: one.theirs for what, one in meant.items()}}
    assert ours == {**theirs, **{what: one.ours for what, one in meant.items()}}
