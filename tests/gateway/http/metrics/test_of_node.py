"""Metrics of the node itself."""

import asyncio

from gateway.http.metrics import of_node
from gateway.http.metrics.text import Page
from gateway.wire.codes import RequestCode
from tests.gateway.http.site import send
from tests.remoting import looped, running, sending, until, waiting


def text(app) -> str:
    page = Page({"node_id": "b"})
    of_node.write(page, app.node, "node-1", app.server)
    return page.text().decode()


@looped
async def test_connections_waiting_pulls_and_latencies_are_told(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)
        waits = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.holds) == 1)
        found = text(app)
        tasks = len(asyncio.all_tasks())
        await client.ask(sending("orders"), b"wakes it")
        await waits
    listener = app.server.listeners[0]
    for line in (
        f'ropeway_connections{{node_id="b",listener="127.0.0.1:{listener.port}"}} 1',
        'ropeway_long_polls_held{node_id="b"} 1',
        'ropeway_leader{node_id="b",node="node-1"} 1',
        f'ropeway_tasks{{node_id="b"}} {tasks}',
        'ropeway_timer_unread_messages{node_id="b"} 0',
        'rocketmq_half_messages{node_id="b"} 0',
        'rocketmq_broker_permission{node_id="b"} 6',
    ):
        assert f"\n{line}\n" in found
    code = f'code="{int(RequestCode.SEND_MESSAGE_V2)}",request="SEND_MESSAGE_V2"'
    assert f'ropeway_request_latency_seconds_count{{node_id="b",{code}}} 1\n' in found
    # What waits for messages is not timed.
    assert "PULL_MESSAGE" not in found


def test_a_code_that_nobody_knows_has_a_name_all_the_same():
    assert of_node._name(99_999) == "unknown"
