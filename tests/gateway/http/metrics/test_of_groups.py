"""Metrics of groups and clients."""

from ropeway.gateway.http.metrics import of_groups
from ropeway.gateway.http.metrics.text import Page
from ropeway.storage.api import NotReadyError
from tests.gateway.http.site import send
from tests.remoting import beat, looped, running
from tests.requests import committing


async def text(app) -> str:
    page = Page({"node_id": "b"})
    await of_groups.write(page, app.node)
    return page.text().decode()


GROUP = (
    '{node_id="b",consumer_group="readers",topic="orders",is_retry="false",'
    'is_system="false"}'
)


@looped
async def test_lag_and_flight_are_those_of_all_queues_and_of_the_worst(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 5)
        await send(client, "orders", 2, queue_id=1)
        await client.ask(committing("orders", 0, 1))
        found = await text(app)
    for line in (
        f"rocketmq_consumer_lag_messages{GROUP} 6",
        f"ropeway_consumer_lag_queue_max_messages{GROUP} 4",
        f"rocketmq_consumer_inflight_messages{GROUP} 4",
        f"rocketmq_messages_out_total{GROUP} 5",
    ):
        assert f"\n{line}\n" in found


@looped
async def test_clients_are_counted_by_language_and_version(tmp_path):
    async with running(tmp_path) as (app, client):
        await beat(client, "me@host", "readers", producers=("billing",))
        found = await text(app)
    version = app.node.config and 'version="'
    assert f'rocketmq_producer_connections{{node_id="b",language="java",{version}' in (
        found
    )
    assert 'consumer_group="readers",language="java"' in found
    assert 'consume_mode="push"} 1' in found


@looped
async def test_groups_of_the_system_and_topics_that_are_not_open_are_left_out(
    tmp_path,
):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)
        app.node.offsets.commit("CID_RMQ_SYS_TIMER", "orders", 0, 1)
        app.node.offsets.commit("readers", "gone", 0, 1)
        app.node.offsets.commit("readers", "orders", 0, 1)

        class NotOpen:
            @property
            def last_end(self):
                raise NotReadyError("orders")

        app.node.topics.get("orders").partitions[0] = NotOpen()
        assert await text(app) == "\n"
