"""A node sends its metrics to a real receiver, and goes on without one."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.config import ConfigError, OtlpConfig
from ropeway.gateway.http.exporter import exporting
from tests.gateway.http.receiver import receiving, values
from tests.gateway.http.site import send
from tests.remoting import looped, running
from tests.system.process import free_ports

WAIT_S = 120


async def until_sent(receiver, topic: str, count: int) -> None:
    """Wait until the receiver was told of so many messages."""
    async with asyncio.timeout(WAIT_S):
        while True:
            request = await asyncio.to_thread(receiver.came.get, timeout=WAIT_S)
            for labels, point in values(request).get("rocketmq_messages_in_total", ()):
                if labels["topic"] == topic and point.as_int == count:
                    return


@looped
async def test_metrics_are_sent_again_and_again(tmp_path):
    with receiving() as receiver:
        otlp = OtlpConfig(receiver.endpoint, every_ms=50)
        async with running(tmp_path, otlp=otlp) as (app, client), exporting(app):
            await send(client, "orders", 2)
            await until_sent(receiver, "orders", 2)
            await send(client, "orders", 1)
            await until_sent(receiver, "orders", 3)


@looped
async def test_a_node_works_while_no_receiver_is_there_and_finds_one_later(tmp_path):
    (port,) = free_ports(1)
    otlp = OtlpConfig(f"http://127.0.0.1:{port}", every_ms=50)
    with capture_logs() as logs:
        async with running(tmp_path, otlp=otlp) as (app, client), exporting(app):
            await send(client, "orders", 2)
            with receiving(f"127.0.0.1:{port}") as receiver:
                await until_sent(receiver, "orders", 2)
    assert not [one for one in logs if one["log_level"] == "error"]


def test_a_node_ends_while_it_waits_for_a_receiver(tmp_path, monkeypatch):
    # Longer than anybody here waits, so that only the end of sending ends it.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", str(2 * WAIT_S))

    async def main() -> float:
        asked, over, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def say_nothing(_, writer) -> None:
            asked.set()
            await over.wait()
            writer.close()
            ended.set()

        silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        otlp = OtlpConfig(f"http://127.0.0.1:{port}", every_ms=1)
        async with running(tmp_path, otlp=otlp) as (app, _), exporting(app):
            async with asyncio.timeout(WAIT_S):
                await asked.wait()
            ends_s = time.monotonic()
        # gRPC itself would keep the connection for its 20 s of a handshake.
        over.set()
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
        silent.close()
        return ends_s

    # Its thread, too, ends before the loop does.
    ends_s = asyncio.run(main())
    assert time.monotonic() - ends_s < WAIT_S


@looped
async def test_nothing_is_sent_unless_it_is_asked_for(tmp_path):
    async with running(tmp_path) as (app, _):
        assert app.node.config.otlp is None
        before = asyncio.all_tasks()
        async with exporting(app):
            assert asyncio.all_tasks() == before


@looped
async def test_an_endpoint_that_is_none_is_refused(tmp_path):
    otlp = OtlpConfig("127.0.0.1:4317")
    async with running(tmp_path, otlp=otlp) as (app, _):
        with pytest.raises(ConfigError, match="allowed: http://HOST:PORT"):
            async with exporting(app):
                pass
