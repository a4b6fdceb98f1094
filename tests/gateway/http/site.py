"""A node with its site in this process, asked as browsers ask."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from ropeway.gateway.app import App
from ropeway.gateway.config import HttpConfig
from ropeway.gateway.http.setup import site
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from tests.remoting import Remoting, config, connect
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Any
    body: bytes
    json: Any
    """None where it is no JSON."""


class Site(NamedTuple):
    """A node, a connection to it, and its site."""

    app: App
    client: Remoting
    address: str
    session: aiohttp.ClientSession

    async def ask(self, path: str, method: str = "GET", **more: Any) -> Answer:
        """Whatever the answer is."""
        async with self.session.request(method, path, **more) as answer:
            body = await answer.read()
            is_json = answer.content_type == "application/json"
            data = await answer.json() if is_json else None
            return Answer(answer.status, answer.headers, body, data)

    async def get(self, path: str, **params: Any) -> Any:
        """What the API has there."""
        answer = await self.ask(f"/api/{path}", params=params)
        assert answer.status == 200, answer
        return answer.json

    async def refused(self, path: str, status: int = 400, **params: Any) -> str:
        """Why the API has nothing there."""
        answer = await self.ask(f"/api/{path}", params=params)
        assert answer.status == status, answer
        assert answer.json.keys() == {"error"}
        return answer.json["error"]


@asynccontextmanager
async def serving(
    data: Path, http: HttpConfig | None = None, **changes: Any
) -> AsyncIterator[Site]:
    """A node whose site is open."""
    wanted = http or HttpConfig(port=0)
    async with (
        App(config(data, http=wanted, **changes)) as app,
        site(app) as address,
        connect(app.server.listeners[0]) as client,
        aiohttp.ClientSession(address) as session,
    ):
        assert address is not None
        yield Site(app, client, address, session)


async def send(client: Remoting, topic: str, count: int, **changes: Any) -> None:
    """Send messages `0`, `1` ... with keys `k0`, `k1` ... and ids of their own."""
    for number in range(count):
        pairs = {"KEYS": f"k{number}", "UNIQ_KEY": f"{number:032X}", "TAGS": "paid"}
        answer = await client.ask(
            sending(topic, pairs=pairs, **changes), b"%d" % number
        )
        assert answer.code == 0, answer


async def bury(client: Remoting, topic: str, group: str, count: int) -> None:
    """Make dead letters of a topic's first messages."""
    found = (await client.ask(pulling(topic, group=group))).messages()
    for one in found[:count]:
        back = ConsumerSendMsgBack(
            offset=one.message_id, group=group, delay_level=-1, origin_topic=topic
        )
        assert (await client.ask(back)).code == 0
