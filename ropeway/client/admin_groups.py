"""Consumer groups: how they are set up, and who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ropeway.client.errors import AdminError, RequestTimeoutError, ResponseError
from ropeway.client.lags import read_queues
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    GetAllGroupConfig,
    GetConsumerConnectionList,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from ropeway.gateway.wire.commands.group_admin import GetGroupConfig
from ropeway.gateway.wire.commands.nodes import GetNodeStatus

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.message import MessageQueue


class SilentClientError(AdminError):
    """A client is connected, and does not answer what a broker asks it."""


class Member(Struct, frozen=True, order=True):
    """A client that consumes in a group."""

    client_id: str
    address: str
    language: str
    version: int


class _Groups(Struct, rename="camel", frozen=True):
    subscription_group_table: dict[str, bodies.GroupConfig]


class Membership(Struct, frozen=True, kw_only=True):
    """Who consumes in a group, and what."""

    members: list[Member]
    subscriptions: dict[str, bodies.SubscriptionData]
    """By topic; the retry topic's is among them."""
    is_broadcast: bool = False
    """Whether each client gets every message, and keeps its offsets itself."""
    is_push: bool = True


async def config(admin: Admin, group: str) -> bodies.GroupConfig | None:
    """How a group is set up, on the first broker that knows it; None if none does.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    for address in await admin.masters():
        found = await _config_on(admin, address, group)
        if found is not None:
            return found
    return None


async def _config_on(
    admin: Admin, address: str, group: str
) -> bodies.GroupConfig | None:
    if not await _is_ropeway(admin, address):
        # RocketMQ's brokers make a group that is asked for by its name, where
        # autoCreateSubscriptionGroup is on, as it is by default.
        answer = await admin.ask(address, GetAllGroupConfig())
        return answer.json(_Groups).subscription_group_table.get(group)
    answer = await admin.ask(
        address,
        GetGroupConfig(group=group),
        expect=(ResponseCode.SUCCESS, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    )
    is_there = answer.code == ResponseCode.SUCCESS
    return answer.json(bodies.GroupConfig) if is_there else None


async def _is_ropeway(admin: Admin, address: str) -> bool:
    try:
        await admin.ask(address, GetNodeStatus())
    except ResponseError as error:
        return error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    return True


async def known(admin: Admin, group: str) -> bodies.GroupConfig:
    """How a group is set up, on the first broker that knows it.

    Raises:
        AdminError: There is no such group.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await config(admin, group)
    if found is None:
        raise AdminError(f"group {group} does not exist")
    return found


async def create(admin: Admin, group: str, changes: dict[str, Any]) -> None:
    """Make a group on every broker.

    Args:
        admin: Asks.
        group: Its name.
        changes: Members of `bodies.GroupConfig` that are not to be as they are there.

    Raises:
        AdminError: It is there already.
        RemotingError: A broker cannot be reached, or refused.
    """
    if await config(admin, group) is not None:
        raise AdminError(f"group {group} exists already")
    await _put(admin, bodies.GroupConfig(group_name=group, **changes))


async def update(admin: Admin, group: str, changes: dict[str, Any]) -> None:
    """Change a group on every broker; what is not named stays.

    Args:
        admin: Asks.
        group: Its name.
        changes: Members of `bodies.GroupConfig`.

    Raises:
        AdminError: There is no such group.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await known(admin, group)
    # Attributes are told as changes, and none of them changes.
    kept = msgspec.structs.replace(found, attributes={})
    await _put(admin, msgspec.structs.replace(kept, **changes))


async def _put(admin: Admin, wanted: bodies.GroupConfig) -> None:
    await admin.ask_masters(CreateGroup(), bodies.encode(wanted))


async def membership(admin: Admin, group: str) -> Membership:
    """Who consumes in a group, on all brokers together.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    members: dict[str, Member] = {}
    subscriptions: dict[str, bodies.SubscriptionData] = {}
    is_broadcast, is_push = False, True
    for answer in await admin.ask_masters(
        GetConsumerConnectionList(consumer_group=group),
        expect=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
    ):
        if answer.code != ResponseCode.SUCCESS:
            continue
        found = answer.json(admin_bodies.ConsumerConnection)
        members |= {
            one.client_id: Member(
                one.client_id, one.client_addr, one.language, one.version
            )
            for one in found.connection_set
        }
        subscriptions |= found.subscription_table
        is_broadcast = found.message_model == bodies.BROADCASTING
        is_push = found.consume_type == bodies.CONSUME_PASSIVELY
    return Membership(
        members=sorted(members.values()),
        subscriptions=subscriptions,
        is_broadcast=is_broadcast,
        is_push=is_push,
    )


async def queues_of(
    admin: Admin, group: str, client_id: str
) -> list[MessageQueue] | None:
    """Which queues a client of a group reads now; None where it does not say.

    Clients in C++ do not.

    Raises:
        SilentClientError: It does not answer.
        RemotingError: A broker cannot be reached.
    """
    body = await running_info(admin, group, client_id)
    return None if body is None else read_queues(body)


async def running_info(
    admin: Admin, group: str, client_id: str, *, stack: bool = False
) -> bytes | None:
    """A client's ConsumerRunningInfo as it gave it; None where it gives none.

    Args:
        admin: Asks.
        group: One of the client's groups.
        client_id: The client.
        stack: With the stacks of its threads.

    Raises:
        SilentClientError: It does not answer.
        RemotingError: A broker cannot be reached.
    """
    asked = GetConsumerRunningInfo(
        consumer_group=group, client_id=client_id, jstack_enable=stack
    )
    is_silent = False
    for address in await admin.masters():
        try:
            return (await admin.ask(address, asked)).body
        except RequestTimeoutError:
            # A broker waits longer for its client than we do for the broker.
            is_silent = True
        except ResponseError as error:
            is_silent |= error.code == ResponseCode.CONSUME_MSG_TIMEOUT
    if is_silent:
        raise SilentClientError(f"client {client_id} does not answer")
    return None


async def groups_of(admin: Admin, topic: str) -> list[str]:
    """The groups that consume a topic now, or have offsets in it, sorted.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    answers = await admin.ask_of_topic(topic, QueryTopicConsumeByWho(topic=topic))
    names: set[str] = set()
    for answer in answers.values():
        names |= set(answer.json(admin_bodies.GroupList).group_list)
    return sorted(names)
