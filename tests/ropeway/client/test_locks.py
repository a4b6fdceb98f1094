"""Locks of orderly queues."""

from ropeway.client import MessageQueue
from ropeway.client.instance import Instance
from ropeway.client.locks import QueueLocks, by_broker
from tests.ropeway.client.scenario import PATIENT, scenario, send_all


@scenario
async def test_a_queue_is_locked_by_one_client_until_it_unlocks(
    name_server, topic, group
):
    await send_all(name_server, topic, [b"create"])
    clients = [Instance(name_server, PATIENT) for _ in range(2)]
    mine, yours = (QueueLocks(client, group) for client in clients)
    for client in clients:
        client.start()
        route = await client.routes.get(topic)
    first, second = route.read_queues[:2]
    assert await mine.lock([first, second]) == {first, second}
    assert await yours.lock([first]) == set()
    assert await mine.lock([first]) == {first}
    await mine.unlock([first])
    assert await yours.lock([first, second]) == {first}
    await yours.unlock([first])
    await mine.unlock([second])
    for client in clients:
        await client.close()


def test_queues_are_sorted_by_broker():
    queues = [MessageQueue("t", broker, 0) for broker in "bab"]
    groups = [[queue.broker_name for queue in some] for some in by_broker(queues)]
    assert groups == [["a"], ["b", "b"]]
