"""The gateway that tests run."""

import os

import psutil
import pytest

from ropeway.client import Message
from ropeway.client.sync import SyncProducer
from ropeway.testing import GatewayStartError, running_gateway
from tests.ropeway.client.scenario import PATIENT_PRODUCER


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
