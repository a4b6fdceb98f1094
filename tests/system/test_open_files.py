"""A node whose file descriptors are used up by connections, to all its ports."""

from __future__ import annotations

import socket
import sys
import time
import urllib.request
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from benchmarks import counters, requests
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import row_of, to_fields
from tests.requests import sending
from tests.system.process import free_ports
from tests.system.ropeway import PATIENT, Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

FILES = 256
FEW = ("sh", "-c", f'ulimit -n {FILES}; exec {sys.executable} "$@"', "sh")
"""A shell that lets the node open few files."""
WAIT_S = 60.0
BODY = bytes(64 * 1024)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)


def until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def send(connection: socket.socket, topic: str = "orders", queue_id: int = 0) -> int:
    header = sending(topic, queue_id=queue_id)
    code = int(row_of(type(header)).code)
    return requests.ask(
        connection, encode_frame(code, 1, fields=to_fields(header), body=BODY)
    )


def flood(stack: ExitStack, port: int, count: int, first: bytes) -> None:
    """Connections that say so much and stay; some may not even be accepted."""
    for _ in range(count):
        connection = stack.enter_context(socket.socket())
        connection.settimeout(WAIT_S)
        connection.connect(("127.0.0.1", port))
        with suppress(OSError):
            connection.sendall(first)


def cpu_s(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | counters.CPU_CLOCK)


def is_calm(pid: int) -> bool:
    """Whether a node has taken little of a processor for a moment."""
    before_s, began = cpu_s(pid), time.monotonic()
    time.sleep(0.3)
    return cpu_s(pid) - before_s < (time.monotonic() - began) / 4


def ready(http_port: int) -> bool:
    with (
        suppress(OSError),
        urllib.request.urlopen(
            f"http://127.0.0.1:{http_port}/readyz", timeout=5
        ) as answer,
    ):
        return answer.status == 200
    return False


def answers(port: int) -> bool:
    with suppress(OSError), requests.connect(port) as connection:
        connection.settimeout(5)
        frame = encode_frame(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, 1)
        return requests.ask(connection, frame) == 0
    return False


def test_who_is_connected_goes_on_where_no_more_files_can_be_opened(tmp_path: Path):
    http_port = free_ports(1)[0]
    settings = tmp_path / "ropeway.toml"
    settings.write_text(
        f"grpc = true\n{PATIENT}[http]\nport = {http_port}\n"
        "[log]\nsegment_bytes = 1048576\n"
    )
    node = Ropeway(tmp_path, python=FEW, options=["--config", str(settings)])
    node.start()
    try:
        with requests.connect(node.broker_port) as client, ExitStack() as stack:
            sent = 0
            for _ in range(10):
                assert send(client) == 0
                sent += 1
            flood(stack, node.broker_port, FILES, b"\0")
            flood(stack, node.broker_port, FILES, PREFACE)
            flood(stack, http_port, FILES, b"GET / HTTP/1.1\r\n")
            # Segments begin, topics are made: files are opened meanwhile.
            for _ in range(100):
                assert send(client) == 0
                sent += 1
            for number in range(5):
                assert send(client, f"new-{number}") == 0
            until(lambda: is_calm(node.broker_pid))
            assert send(client) == 0
            sent += 1
        until(lambda: answers(node.broker_port))
        until(lambda: ready(http_port))
        assert requests.end_offset(node.broker_port, "orders", 0) == sent
        node.kill()
        node.start()
        assert requests.end_offset(node.broker_port, "orders", 0) == sent
        assert requests.end_offset(node.broker_port, "new-4", 0) == 1
    finally:
        node.stop()
