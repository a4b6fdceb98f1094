"""`ropeway metrics`, against a site that answers."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.gateway.config import HttpConfig
from tests.gateway.http.site import send, serving
from tests.remoting import looped
from tests.system.process import free_ports


async def invoke(*args: str):
    """The command, beside the node that it asks."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["metrics", *args])


@looped
async def test_metrics_are_printed_by_worker(tmp_path):
    (port,) = free_ports(1)
    site = ("--site", f"http://127.0.0.1:{port}")
    async with serving(tmp_path, HttpConfig(port=port)) as node:
        await send(node.client, "orders", 3)
        table = (await invoke(*site)).stdout.splitlines()
        assert table[0].split() == ["metric", "labels", "broker-0"]
        assert any(
            line.split()[0::2] == ["rocketmq_messages_in_total", "3"]
            for line in table
            if 'topic="orders"' in line
        )
        assert not [line for line in table if "_bucket" in line or "queue_id" in line]
        rows = json.loads((await invoke("ropeway_queue_end*", "--json", *site)).stdout)
        assert sum(row["values"]["broker-0"] for row in rows) >= 3
        assert {row["metric"] for row in rows} == {"ropeway_queue_end_offset"}
        nothing = await invoke("nosuch", *site)
        assert (nothing.exit_code, nothing.stdout) == (1, "")
        assert "no metric named nosuch has a value" in nothing.stderr


@looped
async def test_who_does_not_answer_is_named():
    (port,) = free_ports(1)
    found = await invoke("--site", f"http://127.0.0.1:{port}")
    assert (found.exit_code, f"127.0.0.1:{port}" in found.stderr) == (3, True)


@pytest.mark.parametrize("site", ["file:///etc/passwd", "127.0.0.1:8080"])
def test_only_sites_are_asked(site):
    found = CliRunner().invoke(main, ["metrics", "--site", site])
    assert found.exit_code == 2
    assert "allowed: http://HOST:PORT" in found.stderr


@looped
async def test_what_is_no_site_of_ours_is_told(tmp_path):
    async with serving(tmp_path) as node:
        found = await invoke("--site", f"{node.address}/api/nothing")
        assert found.exit_code == 1
        assert "answers 404" in found.stderr
