"""The gateway that tests run."""

import os
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


def test_a_gateway_is_up_in_under_a_second():
    """Counted in seconds of CPU, which other work on the machine does not lengthen."""
    with running_gateway() as gateway:
        used = psutil.Process(gateway.pid).cpu_times()
    assert used.user + used.system < 1


def test_a_gateway_keeps_port_and_data_over_a_kill(ropeway_topic, tmp_path):
    with running_gateway(tmp_path / "data", ["--flush", "sync"]) as gateway:
        address = gateway.name_server
        with SyncProducer(address, "p", config=PATIENT_PRODUCER) as sender:
            queue = sender.send(Message(ropeway_topic, b"kept")).queue
        gateway.kill()
        assert gateway.pid is None
        gateway.start()
        assert gateway.name_server == address
        with SyncProducer(address, "p", config=PATIENT_PRODUCER) as sender:
            again = sender.send(Message(ropeway_topic, b"next"), queue=queue)
        assert again.queue_offset == 1
        gateway.restart()


def test_a_gateway_leaves_no_process():
    with running_gateway() as gateway:
        pid = gateway.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


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
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
