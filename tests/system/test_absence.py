"""A queue that was left alone until Pulsar knew nothing of it goes on where it was.

Here Pulsar retains nothing, and deletes what nobody has open within seconds: with the
topic goes what it knows of who sent, which it keeps for six hours otherwise.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    GetMinOffset,
    Offset,
    QueryConsumerOffset,
)
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import config, connect, looped
from tests.requests import committing, pulling, sending
from tests.storage.pulsar.logs import until
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remoting import Remoting

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

NAMESPACE = "public/absence"


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Pulsar]:
    """A Pulsar that deletes and forgets as soon as it can be told to."""
    server = Pulsar(
        tmp_path / "pulsar",
        settings={
            "managedLedgerMaxEntriesPerLedger": "10",
            "managedLedgerMinLedgerRolloverTimeMinutes": "0",
            "retentionCheckIntervalInSeconds": "1",
            "brokerDeleteInactiveTopicsEnabled": "true",
            "brokerDeleteInactiveTopicsFrequencySeconds": "1",
            "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "1",
        },
    )
    try:
        server.start()
        yield server
    finally:
        server.kill()


def node(pulsar: Pulsar, directory: Path) -> App:
    tenant, namespace = NAMESPACE.split("/")
    return App(
        config(
            directory,
            node="n",
            listeners=(ListenerConfig(port=0, advertised_host="127.0.0.1"),),
            pulsar=PulsarConfig(
                service_url=pulsar.service_url,
                admin_url=pulsar.admin_url,
                tenant=tenant,
                namespace=namespace,
            ),
        )
    )


async def send(client: Remoting, count: int) -> list[int]:
    """The offsets of so many messages."""
    sent = [await client.ask(sending("orders"), b"%d" % n) for n in range(count)]
    assert [one.code for one in sent] == [0] * count
    return [one.read(SendReply).queue_offset for one in sent]


async def forget_all(pulsar: Pulsar) -> None:
    """Return when Pulsar has neither a message nor the name of who sent one."""
    none = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    inactive = {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 1,
        "deleteWhileInactive": True,
    }
    # Of a namespace without any topic a node thinks that it is the wrong one.
    path = f"persistent/{NAMESPACE}/TBW102-partition-0/subscription/keeps"
    await asyncio.to_thread(pulsar.admin, "PUT", path)
    topics: list[str] = []

    async def look() -> None:
        # Again and again: of two changes at once, topics may follow the first for good.
        for policy, value in (("retention", none), ("inactiveTopicPolicies", inactive)):
            path = f"namespaces/{NAMESPACE}/{policy}"
            await asyncio.to_thread(pulsar.admin, "POST", path, value)
        path = f"persistent/{NAMESPACE}"
        topics[:] = await asyncio.to_thread(pulsar.admin, "GET", path)

    await until(lambda: not any("orders-partition-0" in one for one in topics), look)


@looped
async def test_a_group_gets_what_was_sent_after_a_long_absence(
    tmp_path: Path, forgetful: Pulsar
):
    """Offsets began at 0 again, and the group passed over as many as it had read."""
    async with (
        node(forgetful, tmp_path / "data") as app,
        connect(app.server.listeners[0]) as client,
    ):
        assert await send(client, 5) == list(range(5))
        assert (await client.ask(committing("orders", 0, 5))).code == 0
    await forget_all(forgetful)
    async with (
        node(forgetful, tmp_path / "data") as app,
        connect(app.server.listeners[0]) as client,
    ):
        # Who comes first finds that Pulsar deleted the topic; it is made again then.
        answer = await client.ask(sending("orders"), b"0")
        while answer.code == ResponseCode.TOPIC_NOT_EXIST:
            answer = await client.ask(sending("orders"), b"0")
        assert answer.read(SendReply).queue_offset == 5
        assert await send(client, 3) == [6, 7, 8]
        asked = QueryConsumerOffset("readers", "orders", 0)
        assert (await client.ask(asked)).read(Offset).offset == 5
        asked = GetMinOffset(topic="orders", queue_id=0)
        assert (await client.ask(asked)).read(Offset).offset == 5
        found = await client.ask(pulling("orders", 5))
        assert [one.body for one in found.messages()] == [b"0", b"0", b"1", b"2"]
        assert app.node.log.misfits == 1
