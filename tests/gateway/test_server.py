"""The endpoints: accepting, refusing, silence, and an orderly end."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import LimitsConfig, ListenerConfig
from ropeway.gateway.errors import ServerError
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from ropeway.storage.file import disk_latency
from tests.remoting import config, connect, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_every_listener_serves_and_tells_its_own_address(tmp_path: Path):
    listeners = (
        ListenerConfig(port=0, advertised_host="10.1.2.3", advertised_port=1111),
        ListenerConfig(port=0, advertised_host="fd00::5", advertised_port=2222),
        ListenerConfig(port=0),
    )
    async with App(config(tmp_path, listeners=listeners)) as app:
        third = app.server.listeners[2]
        shown = [("10.1.2.3", 1111), ("fd00::5", 2222), ("127.0.0.1", third.port)]
        written = ["10.1.2.3:1111", "[fd00::5]:2222", f"127.0.0.1:{third.port}"]
        for number, listener in enumerate(app.server.listeners):
            async with connect(listener) as client:
                reply = (await client.ask(sending("orders"), b"x")).read(SendReply)
                told = parse_offset_msg_id(reply.msg_id)
                assert (told.host, told.port) == shown[number]
                route = await client.ask(
                    RequestCode.GET_ROUTEINFO_BY_TOPIC, fields={"topic": "orders"}
                )
                assert b'{"0":"%b"}' % written[number].encode() in route.body
                cluster = await client.ask(
                    RequestCode.GET_BROKER_CLUSTER_INFO, fields={}
                )
                assert written[number].encode() in cluster.body
        async with connect(third) as client:
            found = (await client.ask(pulling("orders"))).messages()
            assert [one.store_host for one in found] == shown
            assert [one.born_host[0] for one in found] == ["127.0.0.1"] * 3


@looped
async def test_all_listeners_open_or_none(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = (ListenerConfig(port=0), ListenerConfig(port=port))
        with pytest.raises(ServerError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with App(config(tmp_path, listeners=listeners)):
                pass
    async with running(tmp_path) as (_, client):
        assert (await client.ask(GetAllTopicList())).code == 0


@looped
@pytest.mark.parametrize(
    ("listener", "complaint"),
    [
        (ListenerConfig(host="0.0.0.0", port=0), "needs advertised_host"),
        (
            ListenerConfig(port=0, advertised_host="no.such.host.invalid"),
            "has no address",
        ),
    ],
)
async def test_clients_are_told_an_address_that_they_can_use(
    tmp_path: Path, listener: ListenerConfig, complaint: str
):
    with pytest.raises(ServerError, match=complaint):
        async with App(config(tmp_path, listeners=(listener,))):
            pass


@looped
async def test_one_connection_too_many_is_closed(tmp_path: Path):
    limits = LimitsConfig(connections=2)
    async with running(tmp_path, limits=limits) as (app, client):
        listener = app.server.listeners[0]
        await client.ask(GetAllTopicList())
        async with connect(listener) as second:
            await second.ask(GetAllTopicList())
            async with connect(listener) as third:
                await third.closed()
            assert (await second.ask(GetAllTopicList())).code == 0
        await until(lambda: len(listener.connections) == 1)
        async with connect(listener) as again:
            assert (await again.ask(GetAllTopicList())).code == 0


@looped
async def test_the_silent_are_closed_and_the_busy_are_not(tmp_path: Path):
    # More than a busy machine stands still between two requests.
    limits = LimitsConfig(idle_ms=700)
    async with running(tmp_path, limits=limits) as (app, client):
        listener = app.server.listeners[0]
        async with connect(listener) as silent, connect(listener) as half:
            half.writer.write(b"\0\0\1\0\0\0")
            stop = asyncio.Event()

            async def stay_busy():
                while not stop.is_set():
                    await client.ask(GetAllTopicList())
                    await asyncio.sleep(0.01)

            busy = asyncio.create_task(stay_busy())
            await silent.closed()
            await half.closed()
            assert client.is_open
            stop.set()
            await busy


@looped
async def test_a_shortage_of_files_stops_accepting_only_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.server._ACCEPT_PAUSE_S", 0.01)
    async with running(tmp_path) as (app, client):
        faults = [
            OSError(errno.EMFILE, "Too many open files"),
            OSError(errno.ECONNABORTED, "aborted"),
            OSError(errno.EMFILE, "Too many open files"),
        ]
        take = app.server._take

        def short(*accepted):
            take(*accepted)
            if faults:
                raise faults.pop(0)

        monkeypatch.setattr(app.server, "_take", short)
        listener = app.server.listeners[0]
        for left in (2, 1, 0):
            async with connect(listener) as another:
                assert (await another.ask(GetAllTopicList())).code == 0
            assert len(faults) == left
        async with connect(listener) as another:
            assert (await another.ask(GetAllTopicList())).code == 0
        assert (await client.ask(GetAllTopicList())).code == 0


@looped
async def test_who_connects_to_a_busy_node_waits_for_few_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Under attack, each takes long: who has just connected waits longest."""
    # Behind a write for which the machine stood still, the next ones are a thread's.
    monkeypatch.setattr(disk_latency, "SLOW_WRITE_S", 600.0)
    async with running(tmp_path) as (app, client):
        header = sending("orders")
        assert (await client.ask(header, b"x")).code == 0
        listener = app.server.listeners[0]
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[int] = loop.create_future()
        with socket.create_connection((listener.host, listener.port)) as new:
            new.setblocking(False)
            new.sendall(encode_frame(310, 7, fields=to_fields(header), body=b"x"))

            def iterate(count: int) -> None:
                try:
                    assert new.recv(1 << 16)
                except BlockingIOError:
                    loop.call_soon(iterate, count + 1)
                else:
                    answered.set_result(count)

            iterate(0)
            assert await answered <= 3


@looped
async def test_a_client_that_has_gone_before_it_was_accepted_harms_nobody(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        listener = app.server.listeners[0]
        for _ in range(50):
            with socket.create_connection((listener.host, listener.port)) as gone:
                # Reset, and not an orderly end.
                gone.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                )
        assert (await client.ask(GetAllTopicList())).code == 0
        await until(lambda: len(listener.connections) == 1)


@looped
async def test_newcomers_do_not_wait_for_an_iteration_for_every_few_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where an iteration takes long, more come than are accepted: it took 30 s."""
    async with running(tmp_path) as (app, _):
        loop, (listener,) = asyncio.get_running_loop(), app.server.listeners
        take, tick, taken = app.server._take, 0, Counter[int]()

        def count():
            nonlocal tick
            tick += 1
            loop.call_soon(count)

        def counted(*accepted):
            taken[tick] += 1
            take(*accepted)

        monkeypatch.setattr(app.server, "_take", counted)
        count()
        place = listener.host, listener.port
        clients = [socket.create_connection(place) for _ in range(200)]
        await until(lambda: taken.total() >= len(clients))
        assert max(taken.values()) > len(clients) // 2
        for one in clients:
            one.close()


@looped
async def test_shutdown_answers_what_is_in_flight_and_keeps_it(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"0")
        listener = app.server.listeners[0]
        futures = [client.send(sending("orders"), b"x") for _ in range(200)]
        held = client.send(waiting("orders", 0, queue_id=1))
        await until(lambda: len(app.node.pull_hold) == 1)
        await app.server.close(10)
        answers = await asyncio.gather(*futures)
        assert {one.code for one in answers} == {0}
        assert (await held).code == ResponseCode.PULL_NOT_FOUND
        await client.closed()
        with pytest.raises(OSError, match="Connect"):
            await asyncio.open_connection(listener.host, listener.port)
    async with running(tmp_path) as (_, client):
        found = await client.ask(pulling("orders", max_msg_nums=500, bulk=True))
        assert len(found.messages()) == 201


@looped
async def test_shutdown_does_not_wait_for_a_client_that_goes_on(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"0")
        sent = 0

        async def flood():
            nonlocal sent
            while not client.writer.is_closing():
                client.send(sending("orders"), b"x")
                sent += 1
                if sent % 20 == 0:
                    await asyncio.sleep(0)

        flooding = asyncio.create_task(flood())
        await until(lambda: sent > 100)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await app.server.close(240)
        assert loop.time() - began < 120
        await flooding
        acknowledged = sum(one.code == 0 for one in client.answers)
        assert app.node.topics.get("orders").partitions[0].end == acknowledged


@looped
async def test_shutdown_keeps_nobody_waiting_for_a_request_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun, end = asyncio.Event(), asyncio.Event()

    async def long(*_) -> Answer:
        begun.set()
        await end.wait()
        return Answer()

    code = int(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    monkeypatch.setitem(PROCESSORS, code, long)
    async with running(tmp_path) as (app, client):
        answer = client.send(GetAllTopicList())
        await begun.wait()
        async with connect(app.server.listeners[0]) as other:
            assert (await other.ask(sending("orders"), b"0")).code == 0
            closing = asyncio.create_task(app.server.close(240))
            # Who would send here is told at once to send elsewhere.
            await asyncio.wait_for(other.closed(), 120)
        assert not closing.done()
        end.set()
        assert (await answer).code == 0
        await closing
        await client.closed()


@looped
async def test_shutdown_gives_a_stuck_request_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun = asyncio.Event()

    async def stuck(*_) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Answer()

    code = int(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    monkeypatch.setitem(PROCESSORS, code, stuck)
    async with running(tmp_path) as (app, client):
        client.send(GetAllTopicList())
        await begun.wait()
        await app.server.close(0.05)
        await client.closed()
        assert not app.node.tasks
