"""Where a topic's queues are."""

from ropeway.routing.api import Topic
from tests.gateway.http.site import send, serving
from tests.remoting import looped


@looped
async def test_a_route_tells_brokers_nodes_and_partitions(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        known = site.app.node.routes.topics["orders"]
        address = site.app.server.listeners[0].advertised
        assert await site.get("routes/orders") == {
            "topic": "orders",
            "brokers": [
                {
                    "name": "broker-0",
                    "partitions": known.route["broker-0"],
                    "nodes": [{"name": "broker-0", "address": address, "master": True}],
                }
            ],
        }


@looped
async def test_a_broker_that_does_not_run_has_no_nodes(tmp_path):
    async with serving(tmp_path) as site:
        route = {"broker-7": [0]}
        topic = Topic(name="far", read_queue_nums=1, write_queue_nums=1, route=route)
        await site.app.node.routes.change_topic("far", lambda _: topic)
        (broker,) = (await site.get("routes/far"))["brokers"]
        assert broker == {"name": "broker-7", "partitions": [0], "nodes": []}
