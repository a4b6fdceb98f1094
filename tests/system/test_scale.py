"""A topic with as many queues as there can be is used like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from ropeway.storage.api import MAX_PARTITIONS
from tests.remoting import config, connect, looped
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@looped
async def test_the_first_send_to_a_topic_of_1024_queues_opens_one_of_them(
    tmp_path: Path, pulsar: Pulsar, pulsar_namespace: str
):
    """All of them took 65 s, and a send was answered that the topic was not open."""
    tenant, namespace = pulsar_namespace.split("/")
    given = config(
        tmp_path,
        node="n",
        listeners=(ListenerConfig(port=0, advertised_host="127.0.0.1"),),
        pulsar=PulsarConfig(
            service_url=pulsar.service_url,
            admin_url=pulsar.admin_url,
            tenant=tenant,
            namespace=namespace,
        ),
    )
    async with App(given) as app, connect(app.server.listeners[0]) as client:
        topic = CreateTopic(
            topic="wide",
            default_topic="TBW102",
            read_queue_nums=MAX_PARTITIONS,
            write_queue_nums=MAX_PARTITIONS,
            perm=6,
        )
        assert (await client.ask(topic)).code == 0
        partitions = app.node.topics.get("wide").partitions
        assert len(partitions) == MAX_PARTITIONS
        for queue_id in (7, 1023):
            sent = await client.ask(sending("wide", queue_id=queue_id), b"x")
            assert sent.code == 0
        end = await client.ask(GetMaxOffset(topic="wide", queue_id=512))
        assert end.read(Offset).offset == 0
        opened = [one.number for one in partitions if one.appender]
        assert opened == [7, 512, 1023]
