"""Of connections, calls and sessions that have ended nothing is left to collect."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.config import TlsConfig
from ropeway.gateway.grpc.messages import prefixed
from ropeway.gateway.grpc.protocol import (
    ClientType,
    Duration,
    MessageQueue,
    PullMessageRequest,
    Resource,
    TelemetryCommand,
)
from ropeway.gateway.http.connections import PageConnection
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    DATA,
    END_STREAM,
    GOAWAY,
    PING,
    SETTINGS,
    frame,
    reset_frame,
)
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.cycles import none_left
from tests.gateway.grpc.test_exchanges import EXPIRED, OK, REQUEST, UNKNOWN, Caller
from tests.gateway.grpc.thin import consumer, create, producer, receives, serving, sign
from tests.gateway.http import site
from tests.gateway.http.test_connections import GET, connected
from tests.gateway.pop.rig import Consumer
from tests.gateway.test_pipes import piped
from tests.gateway.test_tls import server_pair, tls_app, trusting  # noqa: F401
from tests.guarded import ALICE, acl_of, allow, populate
from tests.remoting import beat, connect, looped, running, until
from tests.requests import heartbeat, sending, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.gateway.test_tls import Pair

RULES = allow("Topic:orders"), allow("Group:readers")
LONG_S = 60


@asynccontextmanager
async def calling(app: App, **tls: Any) -> AsyncIterator[Caller]:
    """A client of gRPC, until its server has let it go."""
    host, _, port = app.server.listeners[0].advertised.rpartition(":")
    caller = Caller(*await asyncio.open_connection(host, int(port), **tls))
    caller.begin()
    await caller.until(SETTINGS)
    yield caller
    caller.writer.close()
    await until(lambda: not app.server.http2.open)


@asynccontextmanager
async def signing(data: Path) -> AsyncIterator[tuple[App, Caller, dict[str, str]]]:
    """A client of gRPC that leaves no cycles, and the headers that ALICE signs with."""
    async with serving(data, acl=acl_of(data)) as (app, _):
        await populate(app, *RULES)
        await create(app, "orders")
        said: Any = sign(SimpleNamespace(metadata=[]), ALICE).metadata
        who = {name.replace("-", "_"): value for name, value in said}
        async with none_left(), calling(app) as caller:
            yield app, caller, who


async def says_nothing(_: App, __: Caller, **___: str) -> None:
    """It has connected."""


async def is_answered(_: App, caller: Caller, **who: str) -> None:
    caller.call(1, prefixed(REQUEST), **who)
    assert await caller.status() == OK


async def is_refused(_: App, caller: Caller, **who: str) -> None:
    caller.call(1, prefixed(REQUEST), method="Nothing", **who)
    assert await caller.status() == UNKNOWN


async def breaks_a_rule(_: App, caller: Caller, **who: str) -> None:
    caller.call(1, prefixed(REQUEST)[:3], ends=False, **who)
    caller.send(frame(PING, 0, 0, b"short"))
    await caller.until(GOAWAY)


async def tells(caller: Caller, settings: Any, **who: str) -> None:
    command = TelemetryCommand(settings=settings).SerializeToString()
    caller.call(1, prefixed(command), ends=False, method="Telemetry", **who)
    await caller.until(DATA)


async def has_a_session(_: App, caller: Caller, **who: str) -> None:
    await tells(caller, producer("orders"), **who)


async def ends_its_session(_: App, caller: Caller, **who: str) -> None:
    await tells(caller, consumer("orders"), **who)
    caller.send(frame(DATA, END_STREAM, 1))
    assert await caller.status() == OK


async def gives_its_session_up(_: App, caller: Caller, **who: str) -> None:
    await tells(caller, consumer("orders"), **who)
    caller.send(reset_frame(1, ErrorCode.CANCEL))
    assert await caller.is_well()


async def receives_for_long(app: App, caller: Caller, **who: str) -> None:
    await tells(caller, consumer("orders"), **who)
    wanted = prefixed(receives("orders", wait_s=LONG_S).SerializeToString())
    caller.call(3, wanted, method="ReceiveMessage", **who)
    await until(lambda: len(app.node.pop.polling) == 1)


async def receives_until_its_time_is_over(app: App, caller: Caller, **who: str) -> None:
    await receives_for_long(app, caller, **who)
    data = prefixed(receives("orders", wait_s=0).SerializeToString())
    caller.call(5, data, method="ReceiveMessage", grpc_timeout="1m", **who)
    assert await caller.status(5) in {EXPIRED, OK}


async def pulls_for_long(app: App, caller: Caller, **who: str) -> None:
    kind = ClientType.PULL_CONSUMER
    await tells(caller, consumer("orders", kind=kind), **who)
    pull = PullMessageRequest(
        group=Resource(name="readers"),
        message_queue=MessageQueue(topic=Resource(name="orders"), id=0),
        batch_size=1,
        long_polling_timeout=Duration(seconds=LONG_S),
    )
    caller.call(3, prefixed(pull.SerializeToString()), method="PullMessage", **who)
    await until(lambda: len(app.node.pull_hold) == 1)


CALLS = [
    says_nothing,
    is_answered,
    is_refused,
    breaks_a_rule,
    has_a_session,
    ends_its_session,
    gives_its_session_up,
    receives_for_long,
    receives_until_its_time_is_over,
    pulls_for_long,
]


@looped
@pytest.mark.parametrize("does", CALLS)
async def test_nothing_is_left_of_a_client_of_grpc(tmp_path: Path, does):
    """553 MiB waited to be collected of those that came and went for 20 s."""
    async with serving(tmp_path) as (app, _):
        await create(app, "orders")
        async with none_left(), calling(app) as caller:
            await does(app, caller)


@looped
@pytest.mark.parametrize("does", CALLS)
async def test_nor_of_one_that_signs_its_calls(tmp_path: Path, does):
    async with signing(tmp_path) as (app, caller, who):
        await does(app, caller, **who)


@looped
async def test_nor_of_one_that_is_nobody_any_more(tmp_path: Path):
    async with signing(tmp_path) as (app, caller, who):
        await receives_for_long(app, caller, **who)
        users = app.node.guard.administration
        await users.update_user(ALICE, enabled=False)
        assert await caller.status() != OK
        await until(lambda: app.node.reauthorization._task is None)


async def sends(client: Any) -> None:
    assert (await client.ask(sending("orders"), b"x")).code == ResponseCode.SUCCESS


async def is_a_member(client: Any) -> None:
    await beat(client, "me", "readers", producers=("writers",))


async def pulls(client: Any) -> None:
    client.send(waiting("orders", 1))
    await client.ask(RequestCode.GET_ALL_TOPIC_CONFIG, fields={})


async def pops(client: Any) -> None:
    client.send(Consumer(client).header(poll_time=LONG_S * 1000))
    await client.ask(RequestCode.GET_ALL_TOPIC_CONFIG, fields={})


async def sends_garbage(client: Any) -> None:
    client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await client.closed()


@looped
@pytest.mark.parametrize("does", [sends, is_a_member, pulls, pops, sends_garbage])
async def test_nothing_is_left_of_a_client_of_remoting(tmp_path: Path, does):
    async with running(tmp_path) as (app, first):
        await sends(first)
        (listener,) = app.server.listeners
        async with none_left():
            async with connect(listener) as client:
                await does(client)
            await until(lambda: len(listener.connections) == 1)


@looped
async def test_nor_of_one_that_may_not(tmp_path: Path):
    """Its refusal had all of its heartbeat."""
    async with running(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        (listener,) = app.server.listeners
        async with none_left():
            async with connect(listener) as client:
                answer = await client.ask(
                    RequestCode.HEART_BEAT, heartbeat("me", "a", "b"), fields={}
                )
                assert answer.code == ResponseCode.NO_PERMISSION
            await until(lambda: len(listener.connections) == 1)


@looped
async def test_nor_of_those_that_speak_tls(tmp_path: Path, server_pair: Pair):  # noqa: F811
    tls = TlsConfig(certificate=server_pair.certificate, key=server_pair.key)
    trusts = trusting(server_pair)
    trusts.set_alpn_protocols(["h2"])
    async with serving(tmp_path / "data", tls=tls) as (app, _):
        (listener,) = app.server.listeners
        await create(app, "orders")
        async with none_left():
            async with connect(listener, tls=trusting(server_pair)) as client:
                await sends(client)
            async with calling(app, ssl=trusts, server_hostname="localhost") as caller:
                await has_a_session(app, caller)
            await until(lambda: not listener.connections)


@looped
async def test_nor_of_one_whose_bytes_are_piped_to_grpcio(tmp_path: Path):
    async def echo(reader: Any, writer: Any) -> None:
        writer.write(await reader.readexactly(5))
        writer.close()

    async with none_left(), piped(tmp_path / "socket", echo) as (pipes, reader, writer):
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await until(lambda: not pipes.open)


def is_open(one: object) -> bool:
    return type(one) is PageConnection and one._inner is not None


@looped
@pytest.mark.parametrize("sent", [GET, GET[:20], b""])
async def test_nor_of_a_browser(tmp_path: Path, sent: bytes):
    async with site.serving(tmp_path) as page, none_left():
        reader, writer = await connected(page)
        await until(lambda: any(map(is_open, gc.get_objects())))
        writer.write(sent)
        if sent == GET:
            await reader.readline()
        writer.close()
        await until(lambda: not any(map(is_open, gc.get_objects())))


class Cycle:
    """It knows itself."""

    __module__ = "ropeway.tests"

    def __init__(self) -> None:
        self.itself = self


@looped
async def test_a_cycle_is_seen_where_it_was_made_meanwhile():
    before = Cycle()
    async with none_left():
        # As of an earlier test, whose last thread ends now.
        del before
    with pytest.raises(AssertionError, match="collector frees"):
        async with none_left():
            Cycle()
