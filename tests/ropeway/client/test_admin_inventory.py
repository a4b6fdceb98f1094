"""All that a cluster holds, read from ours and from RocketMQ, which do not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.client import Admin, Message, Producer, PullConsumer, admin_inventory
from ropeway.gateway.wire.commands.admin import GetAllGroupConfig, GetAllTopicConfig
from tests.ropeway.client.scenario import CONSUMER, PATIENT, PRODUCER, scenario

if TYPE_CHECKING:
    from ropeway.client.admin_inventory import Inventory


def own(inventory: Inventory, name: str) -> str:
    """All that is said of a topic, and of groups that are named after it."""
    topics = [one for one in inventory.topics if one.topic == name]
    groups = [one for one in inventory.groups if one.group == f"g-{name}"]
    return msgspec.json.encode([topics, groups]).decode()


async def tables(admin: Admin) -> list[bytes]:
    """All topics and groups with the versions of their tables, as servers say them."""
    answers = [
        *await admin.ask_masters(GetAllTopicConfig()),
        *await admin.ask_masters(GetAllGroupConfig()),
    ]
    # Java's tables have no order.
    return [bytes(sorted(answer.body)) for answer in answers]


@scenario
async def test_a_cluster_is_read_page_by_page_and_stays_as_it_is(
    name_server, topic, monkeypatch
):
    monkeypatch.setattr(admin_inventory, "_PAGE", 3)
    group = f"g-{topic}"
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
        PullConsumer(name_server, group, config=CONSUMER) as consumer,
    ):
        await admin.create_topic(topic, 2, attributes={"message.type": "NORMAL"})
        queues = await producer.queues(topic)
        for number in range(5):
            message = Message(topic, b"%d" % number)
            await producer.send(message, queue=queues[number % 2])
        consumer.subscribe(topic)
        read = 0
        while read < 5:
            read += len(await consumer.poll(1.0))
        await consumer.commit()
        await producer.send(Message(topic, b"left"), queue=queues[0])
        before = await tables(admin)
        steps: list[None] = []
        found = await admin_inventory.read(admin, lambda: steps.append(None))
        assert len(steps) >= len(found.topics) + len(found.groups)
        assert await tables(admin) == before
        assert own(await admin_inventory.read(admin), topic) == own(found, topic)

    (it,) = [one for one in found.topics if one.topic == topic]
    assert [(span.begin, span.end) for span in it.spans] == [(0, 4), (0, 2)]
    assert it.messages == 6
    assert not it.is_static
    ((broker, config),) = it.configs.items()
    assert (config.write_queue_nums, config.perm) == (2, 6)
    assert config.attributes == {"message.type": "NORMAL"}
    (reading,) = [one for one in found.groups if one.group == group]
    assert reading.lag(topic) == 1
    assert reading.model == "clustering"
    assert found.readers()[topic] == [group]
    assert {
        (one.role, one.group) for one in found.clients if one.group.endswith(topic)
    } == {("producer", f"p-{topic}"), ("consumer", group)}
    (facts,) = found.brokers
    assert facts.broker == broker
    assert facts.version
    assert facts.clock_ms is not None
    assert facts.is_ropeway or facts.stored_bytes
    assert found.silent == []
