"""A consumer follows its group where an administrator moves it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.wire.commands.group_admin import ResetOffset
from tests.remoting import Remoting
from tests.ropeway.client.scenario import (
    Inbox,
    consumer,
    numbered,
    scenario,
    send_all,
    until,
)

if TYPE_CHECKING:
    from tests.ropeway.client.conftest import Server


async def move(server: Server, topic: str, group: str, time_ms: int) -> None:
    """Move a group on the one broker of a server."""
    port = getattr(server, "broker_port", None)
    host, _, name_port = server.name_server.rpartition(":")
    admin = Remoting(*await asyncio.open_connection(host, int(port or name_port)))
    header = ResetOffset(group=group, topic=topic, timestamp=time_ms, is_force=True)
    answer = await admin.ask(header)
    await admin.close()
    assert answer.code == 0, answer.remark


@scenario
async def test_a_consumer_goes_back_with_its_group(shared_server, topic, group):
    name_server = shared_server.name_server
    await send_all(name_server, topic, numbered(20))
    inbox = Inbox()
    made = consumer(name_server, group)
    made.subscribe(topic, "*", inbox)
    async with made:
        await inbox.wait_for(*numbered(20))
        await move(shared_server, topic, group, 0)
        await until(lambda: len(inbox.bodies) == 40)
        await send_all(name_server, topic, [b"new"])
        await inbox.wait_for(b"new")
    assert inbox.bodies[-1] == b"new"
    assert sorted(inbox.bodies[:-1]) == sorted(numbered(20) * 2)
