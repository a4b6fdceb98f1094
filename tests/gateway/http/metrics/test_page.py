"""The page that Prometheus reads, whole: by its own parser, and of a large node."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.http.metrics import of_topics
from ropeway.gateway.http.metrics.catalog import COMMON, FAMILIES
from ropeway.gateway.http.metrics.page import render
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import CreateTopicList
from ropeway.gateway.wire.commands.quotas import SetQuota
from tests.gateway.http.site import send, serving
from tests.remoting import beat, looped, running
from tests.requests import committing

MANY_QUEUES = 10_000
LIMIT_S = 1.0
"""Of CPU time, forty times what it takes on a machine that has nothing else to do."""


def parsed(page: bytes) -> dict:
    return {one.name: one for one in text_string_to_metric_families(page.decode())}


@looped
async def test_prometheus_reads_it_and_finds_what_the_catalog_says(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(SetQuota("topic", "orders", send_requests_per_s=1000))
        await site.client.ask(committing("orders", 0, 1))
        await beat(site.client, "me@host", "readers", producers=("billing",))
        answer = await site.ask("/metrics")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = parsed(answer.body)
        for name, family in FAMILIES.items():
            there = found[name.removesuffix("_total")]
            assert there.type == family.kind
            assert there.documentation == family.meaning
            common = () if name.startswith("process_") else COMMON
            wanted = {*common, *family.labels}
            for sample in there.samples:
                assert sample.labels.keys() - {"le"} == wanted, sample


@looped
async def test_a_node_that_stands_by_tells_nothing_of_topics(tmp_path):
    async with running(tmp_path) as (app, client):
        await send(client, "orders", 1)
        app.node.leadership.leads = False
        found = parsed(await render(app))
        app.node.leadership.leads = True
        assert found["ropeway_leader"].samples[0].value == 0
        assert "rocketmq_messages_in" not in found
        assert "process_resident_memory_bytes" in found


@pytest.mark.slow
@looped
async def test_ten_thousand_queues_are_told_in_no_time_and_clients_get_turns(
    tmp_path,
):
    topics = TopicsConfig(default_queues=8)
    async with running(tmp_path, topics=topics) as (app, client):
        for start in range(0, MANY_QUEUES // 8, 250):
            made = [
                bodies.TopicConfig(
                    topic_name=f"topic-{start + number}",
                    read_queue_nums=8,
                    write_queue_nums=8,
                )
                for number in range(250)
            ]
            body = bodies.encode(bodies.TopicConfigList(made))
            await client.ask(CreateTopicList(), body)
        fair_queue = 0

        async def take_turns():
            nonlocal fair_queue
            while True:
                fair_queue += 1
                await asyncio.sleep(0)

        taking = asyncio.get_running_loop().create_task(take_turns())
        began_s = time.thread_time()
        page = await render(app)
        assert time.thread_time() - began_s < LIMIT_S
        taking.cancel()
        assert fair_queue >= MANY_QUEUES // of_topics.QUEUES_AT_ONCE
    ends = parsed(page)["ropeway_queue_end_offset"].samples
    assert len(ends) > MANY_QUEUES
