"""What an administrator's tool asks of a server, over a connection of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire.commands.admin import (
    GetConsumerConnectionList,
    GetConsumeStats,
)
from tests.remoting import Frame, Remoting

if TYPE_CHECKING:
    from ropeway.gateway.wire.header import Header
    from tests.clients.fixtures import Server


def ask(server: Server, header: Header, body: bytes = b"") -> Frame:
    """Ask the last of a server's nodes, which is not the one that leads."""
    host, _, port = server.name_server.split(";")[-1].rpartition(":")

    async def run() -> Frame:
        client = Remoting(*await asyncio.open_connection(host.strip("[]"), int(port)))
        try:
            return await client.ask(header, body)
        finally:
            await client.close()

    return asyncio.run(run())


def lag(server: Server, group: str, topic: str) -> int:
    """How many messages of a topic a group has not done."""
    answer = ask(server, GetConsumeStats(consumer_group=group, topic=topic))
    assert answer.code == 0, answer.remark
    return sum(end - done for end, done in progress(answer.body))


def tags(server: Server, group: str, topic: str) -> list[str]:
    """The tags that a group wants of a topic, as the server knows it."""
    answer = ask(server, GetConsumerConnectionList(consumer_group=group))
    assert answer.code == 0, answer.remark
    table = msgspec.json.decode(answer.body)["subscriptionTable"]
    found: list[str] = table[topic]["tagsSet"]
    return found


def progress(body: bytes) -> list[tuple[int, int]]:
    """End and offset of each queue in consume stats."""
    ends, offsets = (
        [int(part.split(b",")[0]) for part in body.split(b'"%b":' % name)[1:]]
        for name in (b"brokerOffset", b"consumerOffset")
    )
    return list(zip(ends, offsets, strict=True))
