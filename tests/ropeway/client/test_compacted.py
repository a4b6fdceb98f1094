"""What brokers tell of compacted topics, over several queues and keys."""

from __future__ import annotations

from ropeway.client import Admin, Message, MessageQueue, Producer
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER, scenario


@scenario
async def test_the_newest_of_a_key_that_is_in_several_queues_is_told(
    ropeway_gateway, topic
):
    server = ropeway_gateway.name_server
    async with (
        Admin(server, config=PATIENT) as admin,
        Producer(server, "p", config=PATIENT_PRODUCER) as producer,
    ):
        await admin.create_topic(topic, 2, attributes={"cleanup.policy": "COMPACTION"})
        (name,) = {queue.broker_name for queue in await producer.queues(topic)}
        for number in range(4):
            queue = MessageQueue(topic, name, number % 2)
            await producer.send(Message(topic, b"%d" % number, keys=("a",)), queue)
        for force in (False, True):
            (broker,) = await admin.compaction(topic, force=force)
            assert (broker.broker_name, len(broker.queues)) == (name, 2)
            assert [one.end for one in broker.queues] == [2, 2]
            newest = await admin.latest(topic, "a")
            assert newest is not None
            assert (newest.body, newest.queue) == (b"3", MessageQueue(topic, name, 1))
        assert [one.messages for one in broker.queues] == [1, 1]
