"""What holds for every client, whatever it does."""

from collections.abc import Callable

import pytest

from ropeway.client import (
    Admin,
    ClientClosedError,
    Producer,
    PullConsumer,
    PushConsumer,
)
from ropeway.client.base import Client
from tests.ropeway.client.fake_server import FakeServer
from tests.ropeway.client.scenario import scenario

CLIENTS = pytest.mark.parametrize(
    "make",
    [
        Admin,
        lambda server: Producer(server, "g"),
        lambda server: PushConsumer(server, "g"),
        lambda server: PullConsumer(server, "g"),
    ],
    ids=["Admin", "Producer", "PushConsumer", "PullConsumer"],
)


@CLIENTS
@scenario
async def test_a_client_starts_once_and_may_be_closed_twice(
    make: Callable[[str], Client],
):
    async with FakeServer() as server:
        async with make(server.address) as client:
            assert "@" in client.client_id
            with pytest.raises(ClientClosedError):
                await client.start()
        await client.close()
