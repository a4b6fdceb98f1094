"""A node of a broker as a process, which can be stopped and killed.

Started with the URL of a route store, the node's name, and for how many seconds its
session may be silent. For each line that it is given it prints one: whether it holds
its place, and which nodes the broker has.
"""

import asyncio
import os
import sys
import time

from ropeway.routing.api import Broker
from ropeway.routing.zookeeper import ZooKeeperSettings, open_routes


async def main(url: str, name: str, session_s: float) -> None:
    routes = await open_routes(url, ZooKeeperSettings(session_s=session_s))
    node = Broker(
        name="b",
        node=name,
        cluster="c",
        addresses=("127.0.0.1:1",),
        pid=os.getpid(),
        incarnation=str(os.getpid()),
    )
    await routes.put_broker(node)
    print("announced", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        # The first thing that it does when it goes on again.
        held = routes.held_until_s > time.monotonic()
        nodes = " ".join(one.node for one in routes.brokers.get("b", ()))
        print("held" if held else "lost", nodes, flush=True)
    await routes.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
