"""Pulsar's own clients at work: pulsar-client for Python, pulsar-perf for Java."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

import pulsar as native

from benchmarks import counters
from benchmarks.load import Report
from benchmarks.pulsar_rounds import Measured, cpu_of, measured
from tests.system.pulsar import JAVA, LOG4J

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

WINDOW = 1000
"""What may be on its way: the client's own default."""
TOPIC = "persistent://public/default/{}"
PERF = "org.apache.pulsar.testclient.PulsarPerfTestTool"
PERF_HEAP = ["-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g"]
PERF_WARM_S = 4
"""Until the JVM has compiled it."""
PERF_MOST_S = 120
AS_FAST_AS_IT_CAN = 100_000_000
"""Messages a second; a rate must be given."""


def client(url: str) -> native.Client:
    """A client that speaks up only where something is wrong."""
    return native.Client(url, logger=native.ConsoleLogger(native.LoggerLevel.Error))


def send_window(
    pulsar: Pulsar, topic: str, size: int, seconds: float, *, batched: bool
) -> Measured:
    """Send without waiting for each answer, from this process."""
    one = client(pulsar.service_url)
    producer = one.create_producer(
        TOPIC.format(topic),
        batching_enabled=batched,
        block_if_queue_full=True,
        max_pending_messages=WINDOW,
    )
    payload = bytes(size)
    failed: list[native.Result] = []

    def done(result: native.Result, _: native.MessageId) -> None:
        if result != native.Result.Ok:
            failed.append(result)

    pids = os.getpid(), pulsar.pid
    before, began, count = cpu_of(pids), time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(10):
            producer.send_async(payload, done)
        count += 10
    producer.flush()
    report = Report(count, time.perf_counter() - began, count, len(failed))
    after = cpu_of(pids)
    one.close()
    return measured(report, before, after)


def send_one_by_one(pulsar: Pulsar, topic: str, size: int, seconds: float) -> Measured:
    """Send, and wait for the answer, from this process."""
    one = client(pulsar.service_url)
    producer = one.create_producer(TOPIC.format(topic), batching_enabled=False)
    payload = bytes(size)
    waits_us: list[float] = []
    pids = os.getpid(), pulsar.pid
    before, began = cpu_of(pids), time.perf_counter()
    sent = began
    while sent - began < seconds:
        producer.send(payload)
        now = time.perf_counter()
        waits_us.append((now - sent) * 1e6)
        sent = now
    after = cpu_of(pids)
    one.close()
    waits_us.sort()
    count = len(waits_us)
    p50, p99 = waits_us[count // 2], waits_us[count * 99 // 100]
    report = Report(count, sent - began, count, 0, p50, p99)
    return measured(report, before, after)


def perf(
    pulsar: Pulsar, topic: str, size: int, seconds: float, folder: Path
) -> Measured:
    """Send batches with pulsar-perf, in a JVM of its own, as it does by default.

    The rate is what Pulsar acknowledged in a second after the first ones, the median;
    the CPU is that of all, divided by all messages.
    """
    log4j, settings = folder / "perf-log4j2.xml", folder / "perf.properties"
    log4j.write_text(LOG4J)
    settings.write_text("")
    last_s = PERF_WARM_S + max(2, round(seconds))
    before, began = counters.cpu_s(pulsar.pid), time.perf_counter()
    running = subprocess.Popen(
        [
            *JAVA,
            *PERF_HEAP,
            f"-Dlog4j.configurationFile={log4j}",
            *["-cp", pulsar.classpath, PERF, str(settings), "produce"],
            *["--service-url", pulsar.service_url, "--admin-url", pulsar.admin_url],
            *["--rate", str(AS_FAST_AS_IT_CAN), "--size", str(size)],
            *["--test-duration", str(last_s), "--stats-interval-seconds", "1"],
            TOPIC.format(topic),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = running.communicate(timeout=PERF_MOST_S)
    finally:
        running.kill()
        running.wait()
    pulsar_s = counters.cpu_s(pulsar.pid) - before
    rates = re.findall(r"Ack received rate: ([\d.]+) ack/s", said)
    total = re.search(r"Aggregated throughput stats --- (\d+) records sent", said)
    if total is None or len(rates) <= PERF_WARM_S:
        raise RuntimeError(
            f"pulsar-perf ended with {running.returncode} after "
            f"{time.perf_counter() - began:.0f} s: {said[-2000:]}"
        )
    steady = [float(one) for one in rates[PERF_WARM_S:]]
    return Measured(statistics.median(steady), 0.0, pulsar_s * 1e6 / int(total[1]))
