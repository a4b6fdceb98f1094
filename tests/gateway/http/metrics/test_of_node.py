"""Metrics of the node itself."""

import asyncio

from ropeway.gateway.config import AuditConfig
from ropeway.gateway.http.metrics import of_node
from ropeway.gateway.http.metrics.text import Page
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.quotas import SetQuota
from tests.gateway.http.site import send
from tests.remoting import looped, running, until
from tests.requests import sending, waiting


def text(app) -> str:
    page = Page({"node_id": "b"})
    of_node.write(page, app.node, "node-1", app.server)
    return page.text().decode()


@looped
async def test_connections_waiting_pulls_and_latencies_are_told(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)
        waits = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.pull_hold) == 1)
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


@looped
async def test_quotas_and_the_audit_log_are_told(tmp_path):
    async with running(tmp_path, audit=AuditConfig(changes_per_minute=1)) as one:
        app, client = one
        for limits in ({"send_bytes_per_s": 1}, {"read_requests_per_s": 7}):
            assert (await client.ask(SetQuota("topic", "orders", **limits))).code == 0
        await client.ask(sending("orders"), b"xx")
        found = text(app)
    of_topic = 'node_id="b",kind="topic",resource="orders"'
    for line in (
        f'ropeway_quota_limit{{{of_topic},limit="send_bytes_per_s"}} 1',
        f'ropeway_quota_limit{{{of_topic},limit="read_requests_per_s"}} 7',
        f'ropeway_quota_throttled_total{{{of_topic},what="send"}} 1',
        f'ropeway_quota_throttled_total{{{of_topic},what="read"}} 0',
        # Two of the quota, of which one is beyond the rate, and the topic itself.
        'ropeway_audit_lines_total{node_id="b",kind="change"} 3',
        'ropeway_audit_lines_left_out_total{node_id="b",kind="change"} 1',
        'ropeway_audit_lines_left_out_total{node_id="b",kind="attempt"} 0',
        'ropeway_audit_lines_unwritten_total{node_id="b"} 0',
        'ropeway_log_misfits_total{node_id="b"} 0',
    ):
        assert f"\n{line}\n" in found


def test_a_code_that_nobody_knows_has_a_name_all_the_same():
    assert of_node._name(99_999) == "unknown"


@looped
async def test_stores_that_are_made_from_the_log_are_told(tmp_path):
    async with running(tmp_path) as (app, _):
        await until(app.node.pop.ledger.is_open)
        await until(lambda: app.node.timer.status().size_bytes)
        found = text(app)
        stores = [one.store for one in app.node.derived_stores()]
    assert stores == ["pops", "timers", "lite topics"]
    for store in stores:
        labels = f'{{node_id="b",store="{store}"}}'
        assert f"\nropeway_derived_store_lag_records{labels} 0\n" in found
        assert f"\nropeway_derived_store_rebuilt_timestamp_seconds{labels} 0" in found
        assert f"\nropeway_derived_store_rebuild_seconds{labels} 0" in found
    size = found.split('ropeway_derived_store_size_bytes{node_id="b",store="timers"} ')
    assert int(size[1].split("\n")[0]) > 0
