"""The cluster as the page shows it first."""

import msgspec

from ropeway.gateway import __version__
from ropeway.gateway.http.api import overview
from ropeway.routing.api import Broker
from tests.gateway.http.site import send, serving
from tests.remoting import looped


@looped
async def test_it_tells_of_the_cluster_and_of_each_broker(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        found = await site.get("overview")
        (broker,) = found.pop("brokers")
        assert found == {
            "cluster": "DefaultCluster",
            "version": __version__,
            "writable": False,
            "log": "embedded",
            "routes": "embedded",
            "node": {"broker": "broker-0", "name": "broker-0", "role": "leads"},
            "topics": 1,
            "groups": 0,
        }
        listener = site.app.server.listeners[0]
        assert broker["nodes"] == [{"id": 0, "address": listener.advertised}]
        assert broker["error"] is None
        # Fewer where midnight came in between.
        assert 0 <= broker["runtime"]["in_today"] <= 3
        assert 0 <= broker["runtime"]["disk_used"] <= 1


@looped
async def test_a_broker_that_does_not_answer_is_shown_with_that(tmp_path):
    async with serving(tmp_path) as site:
        gone = Broker(
            name="broker-9",
            node="broker-9",
            cluster="DefaultCluster",
            addresses=("127.0.0.1:1",),
            pid=1,
        )
        await site.app.node.routes.put_broker(gone)
        found = {one["name"]: one for one in (await site.get("overview"))["brokers"]}
        assert found["broker-0"]["error"] is None
        assert found["broker-9"]["error"] == (
            "the broker at 127.0.0.1:1 does not answer"
        )
        assert found["broker-9"]["runtime"] is None


def test_what_another_broker_leaves_out_is_shown_as_nothing():
    found = overview._runtime({"putTps": "1.5 2 3", "getTransferredTps": ""})
    assert msgspec.json.encode(found)
    assert (found["in_rate"], found["out_rate"], found["disk_used"]) == (1.5, 0.0, None)
