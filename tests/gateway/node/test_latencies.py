"""How long requests take: what is sampled, and in which bucket it falls."""

import pytest

from ropeway.gateway.node import latencies
from ropeway.gateway.node.latencies import BOUNDS_S, Latencies
from ropeway.gateway.wire.codes import RequestCode
from tests.gateway.pop.rig import rigged
from tests.remoting import looped, running, until
from tests.requests import pulling, sending, waiting

SEND, PULL = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.PULL_MESSAGE)
POP = int(RequestCode.POP_MESSAGE)


@pytest.mark.parametrize(
    ("took_s", "bucket"), [(0.0, 0), (BOUNDS_S[0], 0), (0.0002, 1), (11.0, -1)]
)
def test_a_request_falls_into_the_bucket_of_its_time(monkeypatch, took_s, bucket):
    monkeypatch.setattr(latencies.time, "monotonic", lambda: took_s)
    seen = Latencies()
    seen.observe(10, 0.0)
    found = seen.by_code()[10]
    assert found.counts[bucket] == sum(found.counts) == 1
    assert found.sum_s == took_s


@looped
async def test_requests_of_all_paths_are_timed_and_waiting_pulls_are_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("ropeway.gateway.connection.SAMPLE_EVERY_S", 0.0)
    async with running(tmp_path) as (app, client):

        def count(code: int) -> int:
            found = app.node.latencies.by_code().get(code)
            return sum(found.counts) if found else 0

        await client.ask(sending("orders"), b"makes the topic")
        before = count(SEND)
        await client.ask(sending("orders"), b"plain")
        await client.ask(sending("orders", pairs={"DELAY": "1"}), b"delayed")
        assert count(SEND) == before + 2
        await client.ask(pulling("orders"))
        assert count(PULL) == 1
        waits = client.send(waiting("orders", 2))
        await until(lambda: len(app.node.pull_hold) == 1)
        await client.ask(sending("orders"), b"wakes it")
        await waits
        assert count(PULL) == 1
        await client.ask(RequestCode.GET_BROKER_CLUSTER_INFO, fields={})
        assert count(int(RequestCode.GET_BROKER_CLUSTER_INFO)) == 1


@looped
async def test_of_many_requests_few_are_timed(tmp_path, monkeypatch):
    monkeypatch.setattr("ropeway.gateway.connection.SAMPLE_EVERY_S", 3600.0)
    async with running(tmp_path) as (app, client):
        for _ in range(20):
            await client.ask(sending("orders"), b"x")
        counts = app.node.latencies.by_code()
        assert sum(sum(one.counts) for one in counts.values()) == 1


@looped
async def test_the_time_for_which_a_pop_waits_is_no_latency(tmp_path, monkeypatch):
    monkeypatch.setattr("ropeway.gateway.connection.SAMPLE_EVERY_S", 0.0)
    async with rigged(tmp_path) as rig:
        counts = rig.app.node.latencies.by_code
        for poll_ms in (0, 50):
            await rig.consumer.pop(poll_time=poll_ms)
            assert sum(counts()[POP].counts) == 1
