"""Clients that are connected: who they are, and what consumers say of themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client import admin_groups, running_queries
from ropeway.client.errors import AdminError
from ropeway.client.lags import pairs
from ropeway.client.message import MessageQueue
from ropeway.client.running_queries import Query
from ropeway.gateway.wire import admin_bodies
from ropeway.gateway.wire.commands.broker_admin import GetAllProducerInfo

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.admin_groups import Membership

PRODUCER, CONSUMER = "producer", "consumer"


class ClientGroup(Struct, frozen=True, order=True):
    """A client in one of its groups."""

    client_id: str
    role: str
    """PRODUCER or CONSUMER."""
    group: str
    address: str
    language: str
    version: int
    """Of RocketMQ's MQVersion."""


class QueueState(Struct, frozen=True):
    """A queue that a consumer reads."""

    queue: MessageQueue
    committed: int
    cached: int
    """Messages that it has got and not done."""


class TopicRates(Struct, frozen=True, rename="camel"):
    """What a consumer did of a topic in the last minute: ConsumeStatus."""

    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    """Milliseconds for one call of its listener."""
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)


class RunningInfo(Struct, frozen=True):
    """What a consumer says of itself: ConsumerRunningInfo."""

    queues: list[QueueState]
    rates: dict[str, TopicRates]
    stack: str | None
    """The stacks of its threads, where they were asked for."""
    queries: list[Query]
    """Those of Spark that it runs."""


class _ProcessQueue(Struct, frozen=True, rename="camel"):
    commit_offset: int = 0
    cached_msg_count: int = 0


# fastjson's maps of queues are no JSON, so the parts are taken one by one.
_STATUS = re.compile(
    rb'"statusTable"\s*:\s*(\{(?:\s*"[^"]*"\s*:\s*\{[^{}]*\},?)*\s*\})'
)
_STACK = re.compile(rb'"jstack"\s*:\s*("(?:[^"\\]|\\.)*")')


async def connected(admin: Admin) -> list[ClientGroup]:
    """Every client that is connected to some broker, once for each of its groups.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await producers(admin)
    for group in await admin.groups():
        found |= members(group, await admin_groups.membership(admin, group))
    return sorted(found)


async def producers(admin: Admin) -> set[ClientGroup]:
    """Every producer that is connected to some broker.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    return {
        ClientGroup(
            one.client_id,
            PRODUCER,
            group,
            one.remote_ip.removeprefix("/"),
            one.language,
            one.version,
        )
        for answer in await admin.ask_masters(GetAllProducerInfo())
        for group, connections in answer.json(admin_bodies.ProducerTable).data.items()
        for one in connections
    }


def members(group: str, joined: Membership) -> set[ClientGroup]:
    """The consumers of a group."""
    return {
        ClientGroup(
            one.client_id, CONSUMER, group, one.address, one.language, one.version
        )
        for one in joined.members
    }


async def find(admin: Admin, client_id: str) -> list[ClientGroup]:
    """A client in each of its groups.

    Raises:
        AdminError: It is not connected.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = [one for one in await connected(admin) if one.client_id == client_id]
    if not found:
        raise AdminError(
            f"no client {client_id} is connected; `ropeway client list` prints those "
            "that are"
        )
    return found


async def consumption(
    admin: Admin, one: ClientGroup, *, stack: bool = False
) -> RunningInfo | None:
    """What a consumer says of itself; None where it says nothing, as in C++.

    Raises:
        SilentClientError: It does not answer.
        RemotingError: A broker cannot be reached.
    """
    body = await admin_groups.running_info(admin, one.group, one.client_id, stack=stack)
    return None if body is None else read_running_info(body)


def read_running_info(body: bytes) -> RunningInfo:
    """Read a ConsumerRunningInfo.

    Raises:
        msgspec.DecodeError: It is none.
    """
    queues = []
    for queue, value in pairs(body):
        # C++'s clients give numbers as text.
        state = msgspec.json.decode(value, type=_ProcessQueue, strict=False)
        queues.append(QueueState(queue, state.commit_offset, state.cached_msg_count))
    status, stack = _STATUS.search(body), _STACK.search(body)
    return RunningInfo(
        queues=sorted(queues, key=lambda one: one.queue),
        rates=msgspec.json.decode(status[1], type=dict[str, TopicRates])
        if status
        else {},
        stack=_text(stack[1]) if stack else None,
        queries=running_queries.read(body),
    )


def _text(quoted: bytes) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError:
        # Go's clients put line ends into it as they are.
        return quoted[1:-1].decode(errors="replace")
