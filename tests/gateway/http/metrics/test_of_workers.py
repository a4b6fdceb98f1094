"""One page of all workers: real processes, one that is gone, and the page's form."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ropeway.gateway.config import HttpConfig
from ropeway.gateway.http.metrics.of_workers import merge
from tests.gateway.http.site import serving
from tests.remoting import looped
from tests.system.process import ports_in_a_row


def parsed(page: bytes) -> dict:
    return {one.name: one for one in text_string_to_metric_families(page.decode())}


def test_families_of_several_pages_stand_together():
    one = b'# HELP a A.\n# TYPE a gauge\na{node_id="x"} 1\n'
    two = (
        b'# HELP a A.\n# TYPE a gauge\na{node_id="y"} 2\n'
        b"# HELP process_b B.\n# TYPE process_b counter\nprocess_b 7\n"
    )
    assert merge({"x": one, "y": two, "z": None}).decode() == (
        "# HELP ropeway_worker_up Whether a worker answered; 0: its metrics are left "
        "out.\n# TYPE ropeway_worker_up gauge\n"
        'ropeway_worker_up{node_id="x"} 1\nropeway_worker_up{node_id="y"} 1\n'
        'ropeway_worker_up{node_id="z"} 0\n'
        '# HELP a A.\n# TYPE a gauge\na{node_id="x"} 1\na{node_id="y"} 2\n'
        "# HELP process_b B.\n# TYPE process_b counter\n"
        'process_b{node_id="y"} 7\n'
    )


@looped
async def test_a_node_alone_is_its_only_worker(tmp_path):
    async with serving(tmp_path) as site:
        found = parsed((await site.ask("/metrics/workers")).body)
        (up,) = found["ropeway_worker_up"].samples
        assert (up.labels["node_id"], up.value) == ("broker-0", 1)
        (memory,) = found["process_resident_memory_bytes"].samples
        assert memory.labels == {"node_id": "broker-0"}


@pytest.mark.slow
@looped
async def test_every_worker_tells_of_all_and_of_one_that_is_gone(tmp_path):
    from tests.gateway.test_supervisor import supervised

    port, _ = ports_in_a_row(2)
    async with (
        supervised(tmp_path, http=HttpConfig(port=port)) as running,
        aiohttp.ClientSession() as session,
    ):

        async def up(at: int) -> dict[str, float]:
            address = f"http://127.0.0.1:{port + at}/metrics/workers"
            async with session.get(address) as answer:
                found = parsed(await answer.read())
            assert {"rocketmq_topic_number", "process_open_fds"} <= found.keys()
            samples = found["ropeway_worker_up"].samples
            return {one.labels["node_id"]: one.value for one in samples}

        async def all_up() -> None:
            # On a busy machine one may answer the other too late.
            async with asyncio.timeout(120):
                for at in (0, 1):
                    while await up(at) != {"broker-0": 1, "broker-1": 1}:
                        pass

        await all_up()
        stopped = running.worker("broker-1")
        try:
            async with asyncio.timeout(120):
                stopped.suspend()
                while await up(0) != {"broker-0": 1, "broker-1": 0}:
                    # `scripts/stalls` lets go on what it had stopped before us.
                    stopped.suspend()
        finally:
            stopped.resume()
        await all_up()
