"""Metrics of topics: what is stored, and topics that nobody can read yet."""

from ropeway.gateway.http.metrics import of_topics
from ropeway.gateway.http.metrics.text import Page
from ropeway.storage.api import NotReadyError
from tests.gateway.http.site import send
from tests.remoting import looped, running


@looped
async def test_queues_and_topics_tell_what_they_hold(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 3)
        await send(client, "orders", 2, queue_id=1)
        page = Page({"node_id": "b"})
        await of_topics.write(page, app.node)
        text = page.text().decode()
    for line in (
        'rocketmq_messages_in_total{node_id="b",topic="orders",is_system="false"} 5',
        'ropeway_queue_end_offset{node_id="b",topic="orders",queue_id="1"} 2',
        'ropeway_queue_first_offset{node_id="b",topic="orders",queue_id="1"} 0',
        'rocketmq_messages_in_total{node_id="b",topic="TBW102",is_system="true"} 0',
    ):
        assert f"\n{line}\n" in text


@looped
async def test_a_queue_that_is_not_open_counts_by_what_is_known_of_it(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)

        class NotOpen:
            last_end = 7

            @property
            def first(self):
                raise NotReadyError("orders", 2)

        app.node.topics.get("orders").partitions[2] = NotOpen()
        page = Page({"node_id": "b"})
        await of_topics.write(page, app.node)
        found = page.text().decode()
        queue = '{node_id="b",topic="orders",queue_id="2"}'
        assert f"ropeway_queue_end_offset{queue} 7" in found
        assert f"ropeway_queue_first_offset{queue}" not in found
        of_topic = '{node_id="b",topic="orders",is_system="false"}'
        assert f"rocketmq_messages_in_total{of_topic} 8" in found


@looped
async def test_a_topic_that_is_not_open_yet_is_left_out_whole(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)

        class NotOpen:
            first = 0

            @property
            def last_end(self):
                raise NotReadyError("orders")

        partitions = app.node.topics.get("orders").partitions
        partitions[2] = NotOpen()
        page = Page({"node_id": "b"})
        await of_topics.write(page, app.node)
        assert '"orders"' not in page.text().decode()
        assert '"TBW102"' in page.text().decode()
