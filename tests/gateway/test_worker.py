"""A worker by itself: its orders, its report, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import Config, ListenerConfig, TlsConfig
from ropeway.gateway.worker import (
    Endpoint,
    Failed,
    Listening,
    Orders,
    dump_orders,
    dump_report,
    load_orders,
    load_report,
)
from ropeway.routing.database import Database
from tests.remoting import config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMEOUT_S = 60


def test_orders_come_over_whole(tmp_path):
    for given in (
        Config(),
        Config(
            data=tmp_path,
            routes=str(tmp_path / "routes.db"),
            listeners=(ListenerConfig("::1", 1, "mq", 2), ListenerConfig()),
            tls=TlsConfig(tmp_path / "cert", tmp_path / "key"),
        ),
    ):
        orders = Orders(given, "debug", "json")
        assert load_orders(dump_orders(orders)) == orders
        assert dump_orders(orders).count(b"\n") == 1


@pytest.mark.parametrize(
    "report",
    [Listening([Endpoint("::1", 1, "mq:2")], ["recovered: a\nb"]), Failed("a\nb")],
)
def test_reports_come_over_whole(report):
    assert load_report(dump_report(report)) == report
    assert dump_report(report).count(b"\n") == 1


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "ropeway.gateway.worker_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    ) as process:
        yield process
        process.kill()


def start(process: subprocess.Popen[bytes], given: Config) -> Listening | Failed:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(dump_orders(Orders(given, "info", "text")))
    process.stdin.flush()
    return load_report(process.stdout.readline())


def test_it_tells_where_it_listens_and_ends_on_a_signal(worker, tmp_path):
    report = start(worker, config(tmp_path))
    assert isinstance(report, Listening)
    (endpoint,) = report.endpoints
    assert endpoint.advertised == f"127.0.0.1:{endpoint.port}"
    worker.send_signal(signal.SIGTERM)
    worker.wait(TIMEOUT_S)
    assert worker.returncode == 0
    assert b"event=stopped broker=broker-0" in worker.stderr.read()


def test_others_know_of_it_when_it_says_that_it_listens(worker, tmp_path):
    report = start(worker, config(tmp_path, routes=tmp_path / "routes.db"))
    assert isinstance(report, Listening)
    database = Database(tmp_path / "routes.db")
    ((name, lease, _),) = database.leases()
    database.close()
    assert name == "broker-0"
    assert report.endpoints[0].advertised.encode() in lease


def test_it_ends_in_good_order_when_nobody_supervises_it(worker, tmp_path):
    start(worker, config(tmp_path))
    worker.stdin.close()
    worker.wait(TIMEOUT_S)
    assert worker.returncode == 0
    errors = worker.stderr.read()
    assert b"the supervisor is gone" in errors
    assert b"event=stopped" in errors


def test_it_says_in_one_line_why_it_cannot_start(worker, tmp_path: Path):
    (tmp_path / "data").write_text("no directory")
    report = start(worker, config(tmp_path / "data"))
    assert isinstance(report, Failed)
    assert str(tmp_path / "data") in report.reason
    worker.wait(TIMEOUT_S)
    assert (worker.returncode, worker.stderr.read()) == (1, b"")
