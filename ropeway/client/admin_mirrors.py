"""Mirroring topics of another cluster: the same queues, offsets, messages and times.

Queues keep their ids, but where a topic is on several brokers of the source: those of
the second one come behind those of the first. A topic is on one broker of the target,
however many that has: so one node at a time decides where its messages are stored.

What the target has says where to go on, so nothing is lost or doubled by a kill of
anybody: a queue of the target ends where the next message of the source's queue goes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

from ropeway.client import admin_nodes, admin_offsets, admin_topics
from ropeway.client.errors import AdminError, BadResponseError, TopicNotFoundError
from ropeway.client.message import MessageQueue
from ropeway.client.routes import MASTER_ID, PERM_READ
from ropeway.client.spread_queues import in_order
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.mirrors import MessagesMirrored, MirrorMessages
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage, PullReply
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ropeway.client.admin import Admin
    from ropeway.client.admin_offsets import Moved
    from ropeway.client.lags import QueueSpan
    from ropeway.gateway.wire.bodies import TopicConfig

READER = "TOOLS_CONSUMER"
"""The group that messages are read with; RocketMQ's brokers have it for tools.

Source: MixAll.TOOLS_CONSUMER_GROUP, RocketMQ 5.5.0."""
PULLED_AT_ONCE = 32
"""Messages of a pull: the most that RocketMQ gives."""
READ_BYTES = 256 << 10
"""Eight pulls of messages of 1 KiB: stored together, they are less work."""
_FOUND_NOTHING = (
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class Pair(NamedTuple):
    """A queue of the source, and the one that is its mirror."""

    source: MessageQueue
    target: MessageQueue


class Copied(NamedTuple):
    """What a step of a mirror did."""

    messages: int
    next_offset: int
    """Of the message that the target lacks next."""


class Mirror:
    """Mirrors topics; it keeps nothing itself.

    Args:
        source: Reads there, as the group `READER`, which a Ropeway makes; nothing else
            is changed there.
        target: A Ropeway.
        read_bytes: Of a queue, how much is read before it is stored; a pull at least.
            Twice as much of each is in memory.
    """

    def __init__(
        self, source: Admin, target: Admin, read_bytes: int = READ_BYTES
    ) -> None:
        self._source = source
        self._target = target
        self._read_bytes = read_bytes

    async def prepare(self, topic: str) -> list[Pair]:
        """Have a topic at the target whose queues begin where those of the source do.

        Raises:
            AdminError: It cannot be mirrored, or is there and is no mirror of it.
            TopicNotFoundError: The source does not have it.
            RemotingError: A server cannot be reached, or refused.
        """
        configs, spans = await self._look(topic)
        try:
            there = await admin_topics.configs(self._target, topic)
        except TopicNotFoundError:
            broker = await self._broker_for(topic)
            await self._create(topic, broker, _joined(topic, configs), spans)
            return _pairs(topic, broker, spans)
        pairs = _paired(topic, there, spans)
        await self._compare(spans, pairs)
        return pairs

    async def pairs(self, topic: str) -> list[Pair]:
        """Return the queues of a topic that the target has, each with its source.

        Raises:
            AdminError: It cannot be mirrored, or the target has no such topic, or
                has it with other queues.
            TopicNotFoundError: The source does not have it.
            RemotingError: A server cannot be reached, or refused.
        """
        _, spans = await self._look(topic)
        try:
            there = await admin_topics.configs(self._target, topic)
        except TopicNotFoundError as error:
            raise AdminError(f"topic {topic} is not at the target") from error
        return _paired(topic, there, spans)

    async def is_mirror(self, topic: str) -> bool:
        """Return whether nobody but a mirror writes to a topic of the target.

        Raises:
            TopicNotFoundError: The target does not have it.
            RemotingError: A server cannot be reached, or refused.
        """
        configs = await admin_topics.configs(self._target, topic)
        return all(config.mirrored is True for config in configs.values())

    async def _look(self, topic: str) -> tuple[dict[str, TopicConfig], list[QueueSpan]]:
        """How each broker of the source has a topic; its queues in a mirror's order."""
        configs = await admin_topics.configs(self._source, topic)
        for config in configs.values():
            if "COMPACTION" in config.attributes.get("cleanup.policy", ""):
                raise AdminError(
                    f"topic {topic} is compacted, and its offsets have gaps; copy it "
                    "with ropeway consume and produce"
                )
        return configs, [
            await self._source.span(queue) for queue in in_order(topic, configs)
        ]

    async def _broker_for(self, topic: str) -> str:
        """The broker that is to have a topic: by its name, so whoever asks agrees.

        Raises:
            AdminError: No broker runs, or they are of several clusters.
        """
        nodes = await admin_nodes.nodes(self._target)
        if len(clusters := sorted({one.cluster for one in nodes})) > 1:
            raise AdminError(
                f"the target has clusters {', '.join(clusters)}; allowed: one"
            )
        running = [
            one.broker
            for one in nodes
            if one.rank == MASTER_ID and not (one.status and one.status.drained)
        ]
        if not running:
            raise AdminError(
                "no broker of the target has a master now and is not drained; try again"
            )
        return running[crc32(topic.encode()) % len(running)]

    async def _create(
        self, topic: str, broker: str, config: TopicConfig, spans: list[QueueSpan]
    ) -> None:
        attributes = ",".join(f"+{name}={at}" for name, at in config.attributes.items())
        header = CreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            # Who else wrote here would take the offsets of messages to come.
            perm=PERM_READ,
            order=config.order,
            attributes=attributes or None,
            begins=",".join(str(one.begin) for one in spans),
        )
        await self._target.ask_broker(broker, header)

    async def _compare(self, spans: list[QueueSpan], pairs: list[Pair]) -> None:
        """See that what the target has of a topic is a mirror of it."""
        for pair, theirs in zip(pairs, spans, strict=True):
            ours = await self._target.span(pair.target)
            where = f"queue {pair.target.queue_id} of topic {pair.target.topic}"
            if ours.end > theirs.end:
                raise AdminError(
                    f"{where} ends at {ours.end} at the target and at {theirs.end} at "
                    "the source: it is no mirror of it"
                )
            last = ours.end - 1
            if max(ours.begin, theirs.begin) <= last:
                one = await _identity(self._source, pair.source, last)
                other = await _identity(self._target, pair.target, last)
                if one != other:
                    raise AdminError(
                        f"{where} has another message at offset {last} than the "
                        "source: it is no mirror of it"
                    )

    async def next_offset(self, pair: Pair) -> int:
        """The offset of the message that the target lacks next."""
        return (await self._target.span(pair.target)).end

    async def copies(self, pair: Pair, offset: int) -> AsyncGenerator[Copied, None]:
        """Copy what there is from an offset on, and end where the source ends by now.

        The source is read on while the target stores. Each queue is stored in order, a
        request after the other.

        Raises:
            AdminError: Messages are gone at the source that the target lacks.
            RemotingError: A server cannot be reached, or refused; what was copied
                stays, and copying it again does nothing.
        """
        data, read_to = await self._read(pair, offset)
        while data:
            # Both have ended before anything goes on, or fails.
            after, ahead = await asyncio.gather(
                self._store(pair, data),
                self._read(pair, read_to),
                return_exceptions=True,
            )
            if isinstance(after, BaseException):
                raise after
            yield Copied(after - offset, after)
            if isinstance(ahead, BaseException):
                raise ahead
            offset = after
            data, read_to = ahead
        begin = (await self._source.span(pair.source)).begin
        if begin > offset:
            raise AdminError(
                f"queue {pair.source.queue_id} of topic {pair.source.topic} begins "
                f"at {begin} at the source by now, and the target lacks what was "
                f"from {offset} on: delete the topic there, and mirror it anew"
            )

    async def _read(self, pair: Pair, offset: int) -> tuple[bytes, int]:
        """Messages of several pulls, and the offset behind them."""
        parts: list[bytes] = []
        while sum(map(len, parts)) < self._read_bytes:
            found = await pull(self._source, pair.source, offset)
            if not found.data:
                break
            parts.append(found.data)
            offset = found.next_offset
        return b"".join(parts), offset

    async def _store(self, pair: Pair, data: bytes) -> int:
        """Have the target store messages; the offset of the next one that it lacks."""
        header = MirrorMessages(pair.target.topic, pair.target.queue_id)
        answer = await self._target.ask_broker(pair.target.broker_name, header, data)
        return answer.header(MessagesMirrored).next_offset

    async def follow(self, group: str, pairs: list[Pair]) -> list[Moved]:
        """Have a group go on at the target where it goes on at the source.

        Not beyond what is mirrored; the rest follows with the next call. In topics that
        have moved, the group goes on by itself.

        Raises:
            AdminError: The target has no such group.
            RemotingError: A server cannot be reached, or refused.
        """
        topics = {pair.target.topic for pair in pairs}
        mirrors = {topic for topic in topics if await self.is_mirror(topic)}
        wanted: dict[MessageQueue, int] = {}
        for pair in pairs:
            if pair.target.topic not in mirrors:
                continue
            theirs, ours = await asyncio.gather(
                admin_offsets.committed(self._source, group, pair.source),
                admin_offsets.committed(self._target, group, pair.target),
            )
            if theirs is None or theirs == ours:
                continue
            span = await self._target.span(pair.target)
            at = min(max(theirs, span.begin), span.end)
            if at != ours:
                wanted[pair.target] = at
        moved = await admin_offsets.planned(self._target, group, wanted)
        for one in moved:
            await admin_offsets.commit(self._target, group, one.queue, one.after)
        return moved


def _pairs(topic: str, broker: str, spans: list[QueueSpan]) -> list[Pair]:
    return [
        Pair(one.queue, MessageQueue(topic, broker, queue_id))
        for queue_id, one in enumerate(spans)
    ]


def _joined(topic: str, configs: dict[str, TopicConfig]) -> TopicConfig:
    """How a topic is set up on one broker that is on several ones at the source.

    Raises:
        AdminError: They have it differently, so producers would find other queues.
    """
    first, *others = configs.values()
    if not others:
        return first
    if any(
        (one.perm, one.order, one.attributes, one.read_queue_nums)
        != (first.perm, first.order, first.attributes, one.write_queue_nums)
        for one in configs.values()
    ):
        raise AdminError(
            f"topic {topic} is not the same on brokers {', '.join(sorted(configs))} "
            "of the source; allowed: one permission, order and attributes, and as many "
            "queues to read as to write on each"
        )
    queues = sum(one.read_queue_nums for one in configs.values())
    return msgspec.structs.replace(
        first, read_queue_nums=queues, write_queue_nums=queues
    )


def _paired(
    topic: str, there: dict[str, TopicConfig], spans: list[QueueSpan]
) -> list[Pair]:
    if len(there) > 1:
        raise AdminError(
            f"topic {topic} is on brokers {', '.join(there)} of the target; allowed: "
            "on one, or a topic that is not there"
        )
    ((broker, config),) = there.items()
    queues = max(config.read_queue_nums, config.write_queue_nums)
    if queues != len(spans):
        raise AdminError(
            f"topic {topic} has {queues} queues at the target and {len(spans)} at "
            "the source; allowed: as many, or a topic that is not there (a broker of "
            "the source that is away has none)"
        )
    return _pairs(topic, broker, spans)


class Pulled(NamedTuple):
    """Stored messages as they are; empty where there is none."""

    data: bytes
    next_offset: int
    """Of the message behind them."""


def asking(topic: str, queue_id: int, offset: int, count: int) -> PullMessage:
    """Make the request for stored messages of a queue from an offset on, at once."""
    return PullMessage(
        consumer_group=READER,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )


async def pull(admin: Admin, queue: MessageQueue, offset: int) -> Pulled:
    """Read stored messages from an offset on.

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    header = asking(queue.topic, queue.queue_id, offset, PULLED_AT_ONCE)
    answer = await admin.ask_broker(
        queue.broker_name, header, expect=(ResponseCode.SUCCESS, *_FOUND_NOTHING)
    )
    if answer.code != ResponseCode.SUCCESS:
        return Pulled(b"", offset)
    return Pulled(bytes(answer.body), answer.header(PullReply).next_begin_offset)


async def _identity(admin: Admin, queue: MessageQueue, offset: int) -> object:
    """What is the same of a message wherever it is stored."""
    data = (await pull(admin, queue, offset)).data
    try:
        one = stored.decode(next(iter(stored.split(data)))) if data else None
    except MessageError as error:
        raise BadResponseError(f"broker {queue.broker_name!r} sent {error}") from error
    return one and (one.queue_offset, one.body, one.properties, one.born_ms)
