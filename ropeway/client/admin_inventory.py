"""All that a cluster holds, as far as it tells: what a migration has to know.

Nothing is changed. RocketMQ's brokers from 4.9 on answer, and Ropeway's.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from ropeway.client import (
    admin_broker_facts,
    admin_clients,
    admin_groups,
    admin_nodes,
    admin_users,
)
from ropeway.client.admin_broker_facts import BrokerFacts
from ropeway.client.admin_clients import ClientGroup
from ropeway.client.admin_groups import Membership
from ropeway.client.admin_under_way import Reading, UnderWay, under_way
from ropeway.client.errors import AdminError, ResponseError
from ropeway.client.lags import QueueLag, QueueSpan, read_lags, read_spans
from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import AclInfo, UserInfo
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    GetAllGroupConfig,
    GetAllTopicConfig,
    GetConsumeStats,
    GetTopicStats,
)
from ropeway.gateway.wire.commands.group_admin import GetAllMessageRequestMode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from ropeway.client.admin import Admin

T = TypeVar("T")

_NEVER_TOLD = (
    "how large each topic is; RocketMQ tells all of a broker together",
    "where consumers that broadcast are; they keep their offsets themselves",
    "whether a group broadcasts of which no consumer is connected",
)
_AT_ONCE = 16
_PAGE = 1000


class TopicFacts(Struct, frozen=True, kw_only=True):
    """A topic on all brokers."""

    topic: str
    configs: dict[str, bodies.TopicConfig]
    """By the broker's name."""
    spans: list[QueueSpan]
    is_static: bool
    """Whether it has logical queues (RIP-21)."""

    @property
    def messages(self) -> int:
        """How many are stored."""
        return sum(span.end - span.begin for span in self.spans)


class GroupFacts(Struct, frozen=True, kw_only=True):
    """A consumer group on all brokers."""

    group: str
    configs: dict[str, bodies.GroupConfig]
    """By the broker's name."""
    lags: list[QueueLag]
    membership: Membership
    pops: list[str] = []
    """Topics that are set to be popped by it, as `mqadmin setConsumeMode` does."""

    def lag(self, topic: str | None = None) -> int:
        """Messages that it has not read, of all topics or of one."""
        return sum(lag.lag for lag in self.lags if topic in (None, lag.queue.topic))

    @property
    def model(self) -> str:
        """Broadcasting or clustering; empty where no consumer is connected."""
        if not self.membership.members:
            return ""
        return "broadcasting" if self.membership.is_broadcast else "clustering"

    @property
    def topics(self) -> set[str]:
        """What it has offsets in or subscribes to, its retries among them."""
        return {lag.queue.topic for lag in self.lags} | set(
            self.membership.subscriptions
        )


class Inventory(Struct, frozen=True, kw_only=True):
    """All that a cluster holds, but for the messages themselves."""

    clusters: list[str]
    brokers: list[BrokerFacts]
    silent: list[str]
    """Brokers that have no master now: what they have is not among this."""
    topics: list[TopicFacts]
    groups: list[GroupFacts]
    clients: list[ClientGroup]
    users: list[UserInfo]
    policies: list[AclInfo]
    under_way: list[UnderWay]
    untold: list[str]
    """What it does not tell, a sentence each."""

    def readers(self) -> dict[str, list[str]]:
        """The groups that have offsets in a topic or subscribe to it, by topic."""
        found: dict[str, list[str]] = {}
        for group in self.groups:
            for topic in group.topics:
                found.setdefault(topic, []).append(group.group)
        return found


class _Mode(Struct, frozen=True):
    mode: str


class _Modes(Struct, rename="camel", frozen=True):
    message_request_mode_map: dict[str, dict[str, _Mode]]
    """By topic and group."""


class _Total(Header, frozen=True):
    """How many topics or groups there are: either of two headers."""

    total_topic_num: I32 | None = None
    total_group_num: I32 | None = None


class _Page(Struct, rename="camel", frozen=True):
    """Some of a broker's topics or groups."""

    data_version: msgspec.Raw = msgspec.Raw(b"")
    topic_config_table: dict[str, bodies.TopicConfig] = {}
    topic_queue_mapping_detail_map: dict[str, msgspec.Raw] | None = None
    subscription_group_table: dict[str, bodies.GroupConfig] = {}

    @property
    def count(self) -> int:
        return len(self.topic_config_table) + len(self.subscription_group_table)


def _topics_from(seen: int, version: str | None) -> Header:
    return GetAllTopicConfig(topic_seq=seen, max_topic_num=_PAGE, data_version=version)


def _groups_from(seen: int, version: str | None) -> Header:
    return GetAllGroupConfig(group_seq=seen, max_group_num=_PAGE, data_version=version)


async def read(admin: Admin, step: Callable[[], None] = lambda: None) -> Inventory:
    """Ask a cluster for all that it holds.

    Args:
        admin: Asks.
        step: Called for each thing that was asked for, as there are many.

    Raises:
        AdminError: It has no broker with a master.
        ResponseError: Who asks may not know it.
        RemotingError: A server cannot be reached, or is no RocketMQ.
    """
    info = await admin.cluster_info()
    nodes = [one for one in await admin_nodes.nodes(admin) if one.rank == MASTER_ID]
    if not nodes:
        raise AdminError("there is no broker with a master; start one")
    reader = _Reader(admin, {node.broker: node.address for node in nodes}, step)
    topics = await reader.topics()
    groups = await reader.groups()
    brokers = await reader.all(admin_broker_facts.read(admin, node) for node in nodes)
    users, policies = await reader.users()
    return Inventory(
        clusters=sorted(info.cluster_addr_table),
        brokers=brokers,
        silent=sorted(info.broker_addr_table.keys() - reader.masters.keys()),
        topics=topics,
        groups=groups,
        clients=await reader.clients(groups),
        users=users,
        policies=policies,
        under_way=await under_way(
            admin,
            [_reading(one, topics) for one in brokers],
            [lag for group in groups for lag in group.lags],
            reader.untold,
        ),
        untold=[*_NEVER_TOLD, *reader.untold],
    )


def _reading(broker: BrokerFacts, topics: list[TopicFacts]) -> Reading:
    return Reading(
        broker=broker.broker,
        cluster=broker.cluster,
        address=broker.address,
        is_ropeway=broker.is_ropeway,
        spans=[
            span
            for topic in topics
            for span in topic.spans
            if span.queue.broker_name == broker.broker
        ],
    )


class _Reader:
    """Asks masters, some at a time, and notes what they do not tell."""

    def __init__(
        self, admin: Admin, masters: dict[str, str], step: Callable[[], None]
    ) -> None:
        self._admin = admin
        self._step = step
        self.masters = masters
        """Address by the broker's name."""
        self.untold: list[str] = []
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def all(self, work: Iterable[Awaitable[T]]) -> list[T]:
        async def in_turn(one: Awaitable[T]) -> T:
            async with self._slots:
                found = await one
            self._step()
            return found

        return list(await asyncio.gather(*map(in_turn, work)))

    async def topics(self) -> list[TopicFacts]:
        configs: dict[str, dict[str, bodies.TopicConfig]] = {}
        static: set[str] = set()
        for broker, address in self.masters.items():
            for page in await self._pages(address, _topics_from):
                static |= (page.topic_queue_mapping_detail_map or {}).keys()
                for name, config in page.topic_config_table.items():
                    configs.setdefault(name, {})[broker] = config
        found = await self.all(
            self._spans(name, broker) for name, on in configs.items() for broker in on
        )
        spans: dict[str, list[QueueSpan]] = {name: [] for name in configs}
        for name, more in found:
            spans[name] += more
        return [
            TopicFacts(
                topic=name,
                configs=on,
                spans=sorted(spans[name], key=lambda span: span.queue),
                is_static=name in static,
            )
            for name, on in sorted(configs.items())
        ]

    async def _pages(
        self, address: str, make: Callable[[int, str | None], Header]
    ) -> list[_Page]:
        pages: list[_Page] = []
        seen, version = 0, None
        while True:
            answer = await self._admin.ask(address, make(seen, version))
            page = answer.json(_Page)
            now = bytes(page.data_version).decode()
            if version not in (None, now):
                # Something was made meanwhile, and the broker begins anew.
                pages, seen = [], 0
            pages.append(page)
            seen, version = seen + page.count, now
            told = answer.header(_Total)
            total = told.total_topic_num or told.total_group_num or 0
            # 4.x says no total, and all at once.
            if seen >= total or not page.count:
                return pages

    async def _spans(self, topic: str, broker: str) -> tuple[str, list[QueueSpan]]:
        answer = await self._admin.ask(
            self.masters[broker],
            GetTopicStats(topic=topic),
            # It was deleted meanwhile, or is the broker's own.
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        return topic, read_spans(answer.body)

    async def groups(self) -> list[GroupFacts]:
        configs: dict[str, dict[str, bodies.GroupConfig]] = {}
        for broker, address in self.masters.items():
            for page in await self._pages(address, _groups_from):
                for name, config in page.subscription_group_table.items():
                    configs.setdefault(name, {})[broker] = config
        pops = await self._pops()
        return await self.all(
            self._group(name, on, pops.get(name, []))
            for name, on in sorted(configs.items())
        )

    async def _group(
        self, name: str, configs: dict[str, bodies.GroupConfig], pops: list[str]
    ) -> GroupFacts:
        lags: list[QueueLag] = []
        for broker in configs:
            asked = GetConsumeStats(consumer_group=name)
            answer = await self._admin.ask(self.masters[broker], asked)
            lags += read_lags(answer.body)
        return GroupFacts(
            group=name,
            configs=configs,
            lags=sorted(lags, key=lambda lag: lag.queue),
            membership=await admin_groups.membership(self._admin, name),
            pops=pops,
        )

    async def _pops(self) -> dict[str, list[str]]:
        """Topics that groups are set to pop, by the group's name."""
        found: dict[str, set[str]] = {}
        with self.noting("which groups are set to pop"):
            for answer in await self._admin.ask_masters(GetAllMessageRequestMode()):
                modes = answer.json(_Modes).message_request_mode_map
                for topic, groups in modes.items():
                    for group, mode in groups.items():
                        if mode.mode == "POP":
                            found.setdefault(group, set()).add(topic)
        return {group: sorted(topics) for group, topics in found.items()}

    async def clients(self, groups: list[GroupFacts]) -> list[ClientGroup]:
        found: set[ClientGroup] = set()
        with self.noting("connected producers"):
            found |= await admin_clients.producers(self._admin)
        for group in groups:
            found |= admin_clients.members(group.group, group.membership)
        return sorted(found)

    async def users(self) -> tuple[list[UserInfo], list[AclInfo]]:
        users: list[UserInfo] = []
        policies: list[AclInfo] = []
        with self.noting("users and policies (those of 4.x are in plain_acl.yml)"):
            users = await admin_users.users(self._admin)
            policies = await admin_users.policies(self._admin)
        return users, policies

    @contextlib.contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Go on where a broker does not know a request."""
        try:
            yield
        except ResponseError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                raise
            self.untold.append(f"{what}; {error}")
