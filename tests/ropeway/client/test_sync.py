"""The client without asyncio."""

import threading

import pytest

from ropeway.client import ClientClosedError, ConsumeFrom, Message
from ropeway.client.sync import SyncProducer, SyncPullConsumer, SyncPushConsumer
from tests.ropeway.client.scenario import CONSUMER, PATIENT_PRODUCER, numbered


def test_a_synchronous_producer_and_consumers_work(name_server, topic, group):
    with SyncProducer(name_server, "p", config=PATIENT_PRODUCER) as sender:
        sender.send(Message(topic, b"m0"))
        sender.send_batch([Message(topic, b"m1"), Message(topic, b"m2")])
        sender.send_one_way(Message(topic, b"m3"))
        assert sender.queues(topic) != []
    got: list[bytes] = []
    all_here = threading.Event()

    def handler(message):
        got.append(message.body)
        if set(got) >= set(numbered(4)):
            all_here.set()

    options = {"consume_from": ConsumeFrom.FIRST_OFFSET, "config": CONSUMER}
    reader = SyncPushConsumer(name_server, group, **options)
    reader.subscribe(topic, "*", handler)
    with reader:
        assert all_here.wait(200)
        assert {queue.topic for queue in reader.queues} >= {topic}
    with SyncPullConsumer(name_server, f"{group}-pull", **options) as puller:
        queues = puller.queues(topic)
        puller.assign(queues)
        bodies: list[bytes] = []
        while len(bodies) < 4:
            bodies += [message.body for message in puller.poll(5)]
        assert sorted(bodies) == numbered(4)
        puller.commit()
        ends = [puller.end_offset(queue) for queue in queues]
        assert [puller.committed(queue) for queue in queues] == ends
        assert [puller.position(queue) for queue in puller.assignment] == ends
        puller.seek(queues[0], puller.begin_offset(queues[0]))
        assert puller.offset_for_timestamp(queues[0], 0) == 0


def test_a_closed_client_has_no_thread_left(name_server, topic):
    before = threading.enumerate()
    sender = SyncProducer(name_server, "p", config=PATIENT_PRODUCER)
    sender.start()
    (own,) = (one for one in threading.enumerate() if one not in before)
    sender.close()
    sender.close()
    assert own not in threading.enumerate()
    with pytest.raises(ClientClosedError):
        sender.send(Message(topic, b"x"))


def test_threads_share_a_producer(name_server, topic):
    results = []
    with SyncProducer(name_server, "p", config=PATIENT_PRODUCER) as sender:
        sender.send(Message(topic, b"first"))

        def send():
            results.extend(sender.send(Message(topic, b"x")).msg_id for _ in range(20))

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(results)) == 80


def test_errors_come_through(topic):
    with pytest.raises(Exception, match="no connection"):
        SyncPushConsumer("127.0.0.1:1", "g").__enter__()
