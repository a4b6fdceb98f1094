"""Spreading the queues of topics over the brokers that run: which moves, and moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_nodes, admin_topics
from ropeway.client.errors import AdminError
from ropeway.gateway.wire.commands.moves import MoveQueue, QueueMoved

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_nodes import Node

MOVE_TIMEOUT_S = 120.0
"""A broker first writes down all that it took for the queue."""


class Move(Struct, frozen=True):
    """A queue that is to move from one broker to another, or has moved."""

    topic: str
    giver: str
    from_id: int
    taker: str
    to_id: int
    partition: int
    took_ms: int | None = None
    """None where it was not moved."""


def moves(
    topic: str, places: Mapping[str, Sequence[int]], running: Sequence[str]
) -> list[Move]:
    """The fewest moves after which brokers differ by one queue at most.

    Args:
        topic: The topic.
        places: The partitions of each broker's queues, by queue id.
        running: The brokers that are to have queues; others keep theirs.
    """
    now = {name: list(places.get(name, ())) for name in running}
    if not now:
        return []
    least, larger = divmod(sum(map(len, now.values())), len(now))
    # Who has most keeps most, so nothing is moved for the one queue that is over.
    order = sorted(now, key=lambda name: (-len(now[name]), name))
    quota = {name: least + (rank < larger) for rank, name in enumerate(order)}
    planned = []
    for giver in order:
        while len(now[giver]) > quota[giver]:
            taker = min(
                (name for name in now if len(now[name]) < quota[name]),
                key=lambda name: (len(now[name]) - quota[name], name),
            )
            partition = now[giver].pop()
            planned.append(
                Move(topic, giver, len(now[giver]), taker, len(now[taker]), partition)
            )
            now[taker].append(partition)
    return planned


async def plan(admin: Admin, topic: str) -> list[Move]:
    """The moves that spread a topic's queues over the brokers of its cluster that run.

    Raises:
        AdminError: Queues cannot move: the log of a broker is its own.
        ResponseError: There is no such topic, or this is no Ropeway.
        RemotingError: No name server answers.
    """
    places = await admin_topics.places(admin, topic)
    return moves(topic, places, await running(admin, f"topic {topic}", places))


async def running(admin: Admin, what: str, brokers: Collection[str]) -> list[str]:
    """The brokers of a cluster that run and are to have queues.

    Args:
        admin: Asks.
        what: What is on some of them, for the error.
        brokers: Those that it is on.

    Raises:
        AdminError: They are of several clusters, or the log of one is its own.
        RemotingError: No name server answers.
    """
    nodes = [node for node in await admin_nodes.nodes(admin) if node.rank == 0]
    clusters = sorted({node.cluster for node in nodes if node.broker in brokers})
    if len(clusters) > 1:
        raise AdminError(f"{what}: in clusters {', '.join(clusters)}; allowed: one")
    masters = [node for node in nodes if node.cluster in clusters]
    for master in masters:
        if master.status is None:
            raise AdminError(f"broker {master.broker}: {master.trouble}")
        if master.status.log != "pulsar":
            raise AdminError(
                f"broker {master.broker} keeps its messages in an {master.status.log} "
                "log, which no other broker can open; queues move between brokers on "
                "Pulsar"
            )
    drained = {master.broker for master in masters if _is_drained(master)}
    return [one.broker for one in masters if one.broker not in drained]


def _is_drained(master: Node) -> bool:
    return master.status is not None and master.status.drained


async def move(admin: Admin, one: Move) -> Move:
    """Move a queue, and return when the other broker has it.

    Raises:
        AdminError: There is no such broker.
        ResponseError: It was not moved; the remark says why.
        RemotingError: A broker cannot be reached; the queue may have moved.
    """
    master, *_ = await admin_nodes.nodes(admin, one.giver)
    wanted = MoveQueue(topic=one.topic, to_broker=one.taker, partition=one.partition)
    return await ask(admin, master.address, wanted)


async def ask(admin: Admin, address: str, wanted: MoveQueue) -> Move:
    """Ask the leader of a broker for a move; see `move`."""
    answer = await admin.ask(address, wanted, timeout_s=MOVE_TIMEOUT_S)
    done = answer.json(QueueMoved)
    return Move(
        *(done.topic, done.giver, done.from_id, done.taker, done.to_id),
        *(done.partition, done.took_ms),
    )


async def rebalance(
    admin: Admin, topic: str, *, dry_run: bool = False
) -> AsyncIterator[Move]:
    """Spread a topic's queues over the brokers that run, one move after the other.

    Args:
        admin: Asks.
        topic: The topic.
        dry_run: Only say what would move.

    Raises:
        AdminError: As of `plan`.
        ResponseError: As of `move`; what has moved by then stays there.
        RemotingError: Likewise.
    """
    for one in await plan(admin, topic):
        yield one if dry_run else await move(admin, one)
