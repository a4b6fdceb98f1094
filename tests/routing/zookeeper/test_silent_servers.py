"""A server that says nothing any more is noticed, whatever is asked meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.contracts.routes import until
from tests.routing.zookeeper.helpers import opened

if TYPE_CHECKING:
    from ropeway.routing.zookeeper.session import Session
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]


async def ask(session: Session) -> None:
    """Ask more often than kazoo's pings are due: each request puts the next off."""
    while True:
        asked = asyncio.ensure_future(session.sync("/"))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0.05)


def test_a_silent_server_is_given_up_also_while_requests_are_sent(
    chroot: str, zookeeper: ZooKeeper
):
    async def main():
        async with opened(chroot) as (routes,):
            session = routes._session
            asking = asyncio.create_task(ask(session))
            with zookeeper.paused():
                await until(lambda: not session.is_connected)
            await until(lambda: session.is_connected)
            asking.cancel()

    asyncio.run(main())
