"""The gateway that tests run."""

import os
import socket
import subprocess
import sys

import msgspec
import psutil
import pytest

from ropeway.client import Message
from ropeway.client.sync import SyncProducer
from ropeway.testing import GatewayStartError, running_gateway
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT_PRODUCER,
    Inbox,
    consumer,
    scenario,
    send_all,
)


def test_a_gateway_is_up_in_under_a_second_and_leaves_no_process():
    """Counted in seconds of CPU, which other work on the machine does not lengthen."""
    with running_gateway() as gateway:
        pid = gateway.pid
        used = psutil.Process(pid).cpu_times()
    assert used.user + used.system < 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_a_gateway_keeps_port_and_data_over_a_kill(ropeway_topic, tmp_path):
    with running_gateway(tmp_path / "data", ["--flush", "sync"]) as gateway:
        address = gateway.name_server
        with SyncProducer(address, "p", config=PATIENT_PRODUCER) as sender:
            queue = sender.send(Message(ropeway_topic, b"kept")).queue
        gateway.kill()
        assert gateway.pid is None
        assert not can_listen(address)
        gateway.start()
        assert gateway.name_server == address
        with SyncProducer(address, "p", config=PATIENT_PRODUCER) as sender:
            again = sender.send(Message(ropeway_topic, b"next"), queue=queue)
        assert again.queue_offset == 1
        gateway.restart()


def can_listen(address: str) -> bool:
    """Whether another program could take an address, or a connection be given it."""
    host, port = address.split(":")
    with socket.socket() as other:
        try:
            other.bind((host, int(port)))
        except OSError:
            return False
    return True


def test_a_gateway_that_cannot_start_says_why(tmp_path):
    with (
        pytest.raises(GatewayStartError, match="--no-such-option"),
        running_gateway(tmp_path / "data", ["--no-such-option"]),
    ):
        pass


def test_fixtures_give_a_gateway_and_a_topic(ropeway_gateway, ropeway_topic):
    with SyncProducer(
        ropeway_gateway.name_server, "p", config=PATIENT_PRODUCER
    ) as sender:
        assert sender.send(Message(ropeway_topic, b"x")).queue.topic == ropeway_topic


@scenario
async def test_a_consumer_of_a_topic_from_the_start_waits_for_no_look_at_routes():
    once = msgspec.structs.replace(CONSUMER, route_interval_s=3600.0)
    inbox = Inbox()
    with running_gateway(topics=["orders:2"]) as gateway:
        waiting = consumer(gateway.name_server, "kitchen", config=once)
        waiting.subscribe("orders", "*", inbox)
        async with waiting:
            await send_all(gateway.name_server, "orders", [b"one coffee"])
            await inbox.wait_for(b"one coffee")


def test_the_fixtures_topics_are_a_setting_of_pytest(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nropeway_topics = ["orders", "payments:3"]\n'
    )
    (tmp_path / "test_topics.py").write_text(
        """\
import asyncio
from ropeway.client import Admin

def test_they_are_there(ropeway_gateway):
    async def queues(topic):
        async with Admin(ropeway_gateway.name_server) as admin:
            (config,) = await admin.topic_configs(topic)
            return config.write_queue_nums

    assert asyncio.run(queues("orders")) == 8
    assert asyncio.run(queues("payments")) == 3
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "ropeway.pytest_plugin"],
        cwd=tmp_path,
        # Those of others take longer than ours to load.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
