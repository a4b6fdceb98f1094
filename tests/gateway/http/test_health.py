"""Whether a node lives, and whether clients can use it."""

import asyncio

from ropeway.routing.api import RouteStoreUnavailableError
from tests.gateway.http.site import serving
from tests.remoting import looped


@looped
async def test_a_node_that_leads_is_ready(tmp_path):
    async with serving(tmp_path) as site:
        assert (await site.ask("/healthz")).json == {"alive": True}
        answer = await site.ask("/readyz")
        assert answer.status == 200
        assert answer.json == {"ready": True, "role": "leads", "reasons": []}


@looped
async def test_every_reason_against_a_node_is_told(tmp_path, monkeypatch):
    async with serving(tmp_path) as site:
        node = site.app.node

        async def gone():
            raise RouteStoreUnavailableError("connection refused to 10.1.2.3")

        monkeypatch.setattr(node.routes, "catch_up", gone)
        monkeypatch.setattr("ropeway.gateway.http.health.PROBE_S", 0.01)
        monkeypatch.setattr(node.log, "overdue_ms", lambda: 700)
        node.leadership.leads = False
        monkeypatch.setattr(node.leadership, "is_led_elsewhere", lambda: False)
        answer = await site.ask("/readyz")
        assert answer.status == 503
        assert answer.json == {
            "ready": False,
            "role": "waits for a master",
            "reasons": [
                "the route store does not answer",
                "broker broker-0 has no master",
                "the log has not stored a message that came 700 ms ago",
            ],
        }
        # It lives all the same: nobody should restart it for that.
        assert (await site.ask("/healthz")).status == 200
        node.leadership.leads = True


@looped
async def test_a_route_store_that_hangs_is_one_that_does_not_answer(
    tmp_path, monkeypatch
):
    async with serving(tmp_path) as site:

        async def hang():
            await asyncio.Event().wait()

        monkeypatch.setattr(site.app.node.routes, "catch_up", hang)
        monkeypatch.setattr("ropeway.gateway.http.health.PROBE_S", 0.01)
        answer = await site.ask("/readyz")
        assert answer.json["reasons"] == ["the route store does not answer"]
