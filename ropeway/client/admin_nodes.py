"""The nodes of brokers: which there are, how they stand, and which of them leads."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client.diagnosis import diagnose
from ropeway.client.errors import AdminError, RemotingError, ResponseError
from ropeway.gateway.wire import admin_bodies, host_port
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import AllTopicConfigReply, GetAllTopicConfig
from ropeway.gateway.wire.commands.broker_admin import (
    GetAllProducerInfo,
    GetBrokerConfig,
    GetBrokerRuntimeInfo,
    UpdateBrokerConfig,
)
from ropeway.gateway.wire.commands.nodes import GetNodeStatus, NodeStatus, StepBack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from ropeway.client.admin import Admin

STATUS_TIMEOUT_S = 3.0
"""A node that is asked how it stands answers from memory."""
LEAD_TIMEOUT_S = 30.0
"""Longer than any take-over was seen to last on a loaded machine."""
_STEP_BACK_TIMEOUT_S = 30.0
"""To give up, a node writes down all that waits."""
_LOOK_EVERY_S = 0.1
_AT_ONCE = 32


class Node(Struct, frozen=True, kw_only=True):
    """A node of a broker, as routes have it and as it says itself."""

    broker: str
    cluster: str
    rank: int
    """0 is the master; the others take over in this order."""
    address: str
    status: NodeStatus | None = None
    """None where it does not say; then there is some `trouble`."""
    trouble: str = ""
    advice: str = ""
    """What to do about the trouble, where that is known."""
    clock_ms: int = 0
    """How far its clock is ahead of ours, give or take half of `round_trip_ms`."""
    round_trip_ms: int = 0

    @property
    def name(self) -> str:
        """Its name among the nodes of its broker; the address where it is not known."""
        return self.status.node if self.status else self.address

    @property
    def leads(self) -> bool:
        """Whether it answers for its broker, as far as anybody knows."""
        return self.status.leads if self.status else self.rank == 0


class HandOver(Struct, frozen=True):
    """A broker that another node leads now."""

    broker: str
    before: str
    after: str
    took_ms: int


async def nodes(admin: Admin, broker: str | None = None) -> list[Node]:
    """All nodes of all brokers, or of one, by broker and rank.

    Raises:
        AdminError: There is no such broker.
        RemotingError: No name server answers.
    """
    table = (await admin.cluster_info()).broker_addr_table
    if broker is not None and broker not in table:
        raise AdminError(f"there is no broker {broker}; there are {_joined(table)}")
    slots = asyncio.Semaphore(_AT_ONCE)

    async def look(node: Node) -> Node:
        async with slots:
            return await _asked(admin, node)

    found = [
        Node(broker=name, cluster=data.cluster, rank=int(rank), address=address)
        for name, data in sorted(table.items())
        for rank, address in data.broker_addrs.items()
        if broker in (None, name)
    ]
    found.sort(key=lambda node: (node.broker, node.rank))
    return list(await asyncio.gather(*map(look, found)))


async def _asked(admin: Admin, node: Node) -> Node:
    asked_ns, began_s = time.time_ns(), time.monotonic()
    try:
        answer = await admin.ask(
            node.address, GetNodeStatus(), timeout_s=STATUS_TIMEOUT_S
        )
        status = answer.json(NodeStatus)
    except ResponseError as error:
        if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            return msgspec.structs.replace(node, trouble="is no node of Ropeway")
        return await _troubled(admin, node, error)
    except RemotingError as error:
        return await _troubled(admin, node, error)
    trip_ms = (time.monotonic() - began_s) * 1000
    middle_ms = asked_ns / 1_000_000 + trip_ms / 2
    return msgspec.structs.replace(
        node,
        status=status,
        clock_ms=round(status.time_ms - middle_ms),
        round_trip_ms=round(trip_ms),
    )


async def _troubled(admin: Admin, node: Node, error: RemotingError) -> Node:
    found = await diagnose(error, admin.config)
    if found is None:
        return msgspec.structs.replace(node, trouble=str(error))
    advice = found.advice if found.is_of_access else ""
    return msgspec.structs.replace(node, trouble=found.text, advice=advice)


async def runtime(admin: Admin, address: str) -> dict[str, str]:
    """What a broker tells of how it does, under RocketMQ's names.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    answer = await admin.ask(address, GetBrokerRuntimeInfo())
    return answer.json(Facts).table


class Counts(Struct, frozen=True):
    """How many there are of what a broker knows."""

    topics: int | None
    """None: it does not say, as those before 5.0."""
    producers: int


async def counts(admin: Admin, broker: str) -> Counts:
    """Count topics and connected producers of a broker.

    Raises:
        AdminError: There is no such broker.
        RemotingError: It cannot be reached, or refused.
    """
    asked = GetAllTopicConfig(topic_seq=0, max_topic_num=1)
    topics = (await admin.ask_broker(broker, asked)).header(AllTopicConfigReply)
    answer = await admin.ask_broker(broker, GetAllProducerInfo())
    groups = answer.json(admin_bodies.ProducerTable).data.values()
    clients = {one.client_id for members in groups for one in members}
    return Counts(topics.total_topic_num, len(clients))


async def settings(admin: Admin, address: str) -> dict[str, str]:
    """A broker's settings, under RocketMQ's names.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    answer = await admin.ask(address, GetBrokerConfig())
    return _settings(answer.body)


async def master_settings(admin: Admin, broker: str) -> dict[str, str]:
    """Return the settings of a broker's master, under RocketMQ's names.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    return _settings((await admin.ask_broker(broker, GetBrokerConfig())).body)


def _settings(body: bytes) -> dict[str, str]:
    lines = body.decode(errors="replace").splitlines()
    return dict(sorted(line.split("=", 1) for line in lines if "=" in line))


async def update_settings(
    admin: Admin, address: str, values: Mapping[str, str]
) -> None:
    """Change settings of a broker while it runs, all or none.

    Raises:
        ResponseError: It does not change one of them so.
        RemotingError: It cannot be reached.
    """
    body = "".join(f"{name}={value}\n" for name, value in values.items())
    await admin.ask(address, UpdateBrokerConfig(), body.encode())


class Facts(Struct, frozen=True):
    """What a broker tells, by name."""

    table: dict[str, str]


async def move(admin: Admin, broker: str, to: str) -> HandOver:
    """Have another node lead a broker, and return when it does.

    Clients notice nothing but a short wait: what reaches the old master meanwhile is
    sent on to the new one.

    Args:
        admin: Asks.
        broker: Its name.
        to: The node's name or address.

    Raises:
        AdminError: There is no such node, or it cannot be reached, or it does not lead
            in time.
        ResponseError: The master cannot hand over; the remark says why.
        RemotingError: A node cannot be reached.
    """
    order = await nodes(admin, broker)
    master, *others = order
    if not others and not _is(master, to):
        # Whoever is alone knows best why nobody else can lead.
        await step_back(admin, master)
    target = next((node for node in order if _is(node, to)), None)
    if target is None:
        names = _joined(node.name for node in order)
        raise AdminError(f"broker {broker} has no node {to}; it has {names}")
    if target.status is None:
        raise AdminError(f"node {to} of broker {broker}: {target.trouble}")
    began_s = time.monotonic()
    if target.rank:
        for node in others[: target.rank - 1]:
            await step_back(admin, node)
        await step_back(admin, master, target.status.node)
    await _until_it_leads(admin, target)
    took_ms = round((time.monotonic() - began_s) * 1000)
    return HandOver(broker, master.name, target.name, took_ms)


async def step_back(admin: Admin, node: Node, successor: str | None = None) -> None:
    """Have a node go to the end of the order of its broker's nodes.

    Args:
        admin: Asks.
        node: Which one.
        successor: The node that is to be the next; others are refused.

    Raises:
        ResponseError: It cannot; the remark says why.
        RemotingError: It cannot be reached.
    """
    await admin.ask(
        node.address, StepBack(successor=successor), timeout_s=_STEP_BACK_TIMEOUT_S
    )


async def _until_it_leads(admin: Admin, target: Node) -> None:
    give_up_s = time.monotonic() + LEAD_TIMEOUT_S
    while time.monotonic() < give_up_s:
        if (await _asked(admin, target)).leads:
            return
        await asyncio.sleep(_LOOK_EVERY_S)
    raise AdminError(
        f"node {target.name} is to lead broker {target.broker}, and does not after "
        f"{LEAD_TIMEOUT_S:g} s; its log says why"
    )


async def at(admin: Admin, where: str) -> list[Node]:
    """The nodes of a name, at an address, or at all addresses of a host.

    Raises:
        AdminError: Nothing is there.
        RemotingError: No name server answers.
    """
    return _at(await nodes(admin), where)


def _at(found: list[Node], where: str) -> list[Node]:
    there = [node for node in found if _is(node, where) or _is_on(node, where)]
    if not there:
        names = _joined(f"{node.name} ({node.address})" for node in found)
        raise AdminError(f"there is no node {where}; there are {names}")
    return there


async def drain(admin: Admin, where: str) -> AsyncIterator[HandOver]:
    """Move all masters away from a node, or from all nodes of a machine.

    When it has ended, what is there leads no broker, and is the last to lead one again.

    Args:
        admin: Asks.
        where: A node's name, its address, or the host of one or more.

    Raises:
        AdminError: Nothing is there, or a broker has no node elsewhere.
        RemotingError: As of `move`.
    """
    leaving = [(node.broker, node.address) for node in await at(admin, where)]
    there = {address for _, address in leaving}
    for broker, address in leaving:
        # What was moved before has changed the order.
        found = await nodes(admin, broker)
        node = next((one for one in found if one.address == address), None)
        if node is None:
            continue
        elsewhere = [one for one in found if one.address not in there]
        if node.rank:
            if any(one.rank > node.rank for one in elsewhere):
                await step_back(admin, node)
            continue
        to = next((one for one in elsewhere if one.status is not None), None)
        if to is None:
            if len(found) == 1:
                # Whoever is alone knows best why nobody else can lead.
                await step_back(admin, node)
            raise AdminError(f"broker {broker} has no node that can lead elsewhere")
        yield await move(admin, broker, to.address)


def _is(node: Node, name: str) -> bool:
    return name in (node.name, node.address)


def _is_on(node: Node, host: str) -> bool:
    return host_port.split(node.address)[0] == host


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"
