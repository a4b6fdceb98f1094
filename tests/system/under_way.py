"""What is under way when rights end: all kinds that access control judges again."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import grpc
import msgspec

from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import (
    CommitBatch,
    Stage,
    StagedBatch,
    StageReply,
)
from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from ropeway.gateway.wire.commands.pop import FROM_LATEST, Notification, PopMessage
from ropeway.gateway.wire.header import row_of, to_fields
from tests.gateway.grpc.thin import Thin, consumer, receives, sign
from tests.gateway.http.signed import HEADERS
from tests.requests import batch_of, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from ropeway.gateway.wire.header import Header
    from tests.remoting import Remoting
    from tests.system.guarded_deployments import Deployment

    Going = dict[tuple[str, str], asyncio.Task[object]]
    """How each ends, by its node and its kind."""

HOLD_MS = 120_000
"""Nothing may wait for longer."""
DENIED = ResponseCode.NO_PERMISSION
PULL = waiting("mine", group="mine", suspend_timeout_millis=HOLD_MS)
POP = PopMessage(
    consumer_group="mine",
    topic="mine",
    queue_id=-1,
    max_msg_nums=1,
    invisible_time=30_000,
    poll_time=HOLD_MS,
    born_time=0,
    init_mode=FROM_LATEST,
)
NOTIFICATION = Notification(
    consumer_group="mine", topic="mine", queue_id=-1, poll_time=HOLD_MS, born_time=0
)

REFUSED = (Code.FORBIDDEN, Code.UNAUTHORIZED)
BY_RIGHTS: dict[str, tuple[object, ...]] = {
    "pull": (DENIED,),
    "pull of another broker": (DENIED,),
    "pop": (DENIED,),
    "notification": (DENIED,),
    "ReceiveMessage": REFUSED,
}
"""How what waits ends where rights do."""
BY_IDENTITY = {
    **BY_RIGHTS,
    "Telemetry": (grpc.StatusCode.INVALID_ARGUMENT,),
    "page": (None,),
}
"""Likewise, where the principal is no longer known."""


@asynccontextmanager
async def under_way(there: Deployment, who: str) -> AsyncIterator[Going]:
    """Have each kind under way, of a principal, at each node.

    It may send to the topic `mine` and receive from it, and there is nothing in it.
    """
    async with AsyncExitStack() as stack:
        going: Going = {}
        knocking = await stack.enter_async_context(there.everywhere())
        for _, client in knocking:
            await there.until_allowed(client, who, GetMaxOffset("mine", 0))
        for number, (node, client) in enumerate(knocking):
            for kind, one in (
                *_held(there, who, client, f"broker-{int(not number)}"),
                *await _streams(stack, there, who, number),
                ("page", await _page(stack, there, who, number)),
            ):
                going[node, kind] = task = asyncio.ensure_future(one)
                stack.callback(task.cancel)
            # What is asked behind them is answered: they were admitted, and wait.
            await there.until_allowed(client, who, GetMaxOffset("mine", 0))
        assert not {name: task for name, task in going.items() if task.done()}
        yield going


async def ended(going: Going, how: dict[str, tuple[object, ...]]) -> None:
    """See that all of these kinds have ended so."""
    for (node, kind), task in going.items():
        if kind in how:
            found = await task
            assert found in how[kind], (node, kind, found)


def _held(
    there: Deployment, who: str, client: Remoting, other: str
) -> list[tuple[str, Coroutine[Any, Any, object]]]:
    name, password = there.keys[who]
    credentials = Credentials(access_key=name, secret_key=password)

    async def code(header: Header) -> object:
        fields = signed(to_fields(header), b"", credentials)
        asked = client.send(int(row_of(type(header)).code), fields=fields)
        return (await asyncio.shield(asked)).code

    held = [
        ("pull", PULL),
        ("pull of another broker", msgspec.structs.replace(PULL, bname=other)),
        ("pop", POP),
        ("notification", NOTIFICATION),
    ]
    return [(kind, code(header)) for kind, header in held]


async def _streams(
    stack: AsyncExitStack, there: Deployment, who: str, number: int
) -> list[tuple[str, Coroutine[Any, Any, object]]]:
    client = sign(Thin(there.nodes[number], f"waits-{number}"), *there.keys[who])
    stack.push_async_callback(client.close)
    telemetry, answer = await client.telemetry(consumer("mine", "mine"))
    assert answer.status.code == Code.OK, answer
    stack.callback(telemetry.cancel)

    async def receive() -> object:
        asked = receives("mine", "mine", HOLD_MS / 1000)
        return (await client.stream("ReceiveMessage", asked, HOLD_MS))[0].status.code

    return [("ReceiveMessage", receive()), ("Telemetry", telemetry.code())]


async def _page(
    stack: AsyncExitStack, there: Deployment, who: str, number: int
) -> Coroutine[Any, Any, object]:
    session = await stack.enter_async_context(
        aiohttp.ClientSession(there.pages[number])
    )
    name, password = there.keys[who]
    given = {"access_key": name, "secret_key": password}
    async with session.post("/api/session", json=given, headers=HEADERS) as answer:
        assert answer.status == 200, await answer.text()
        cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}

    async def who_is_in() -> object:
        while True:
            async with session.get("/api/session", headers=cookie) as answer:
                if (found := (await answer.json())["name"]) is None:
                    return None
            assert found
            await asyncio.sleep(0.05)

    return who_is_in()


class Staged:
    """A batch that a principal has staged, and may commit or not."""

    def __init__(self, there: Deployment, who: str, client: Remoting) -> None:
        self._there = there
        self._who = who
        self._client = client
        self._batch = StagedBatch({})

    async def stage(self) -> None:
        """Stage a message."""
        staging = Stage(producer_id=self._who, topic="mine", queue_id=0)
        answer = await self._there.ask(
            self._client, self._who, staging, batch_of(b"staged")
        )
        assert answer.code == 0, answer
        offset = answer.read(StageReply).offset
        self._batch = StagedBatch({"broker-0": [offset]})

    async def commit(self) -> int:
        """Commit it; how that is answered."""
        commit = CommitBatch(producer_id=self._who, batch_id=0)
        body = bodies.encode(self._batch)
        return (await self._there.ask(self._client, self._who, commit, body)).code
