"""Messages that nobody acknowledged in time: stored again, in the group's retry topic.

Law: a message counts as returned once it is stored in the retry topic, or among the
group's dead letters where it has come too often; or where nobody can ever have it,
because its topic or group was deleted or retention has taken it. What is none of these
stays out, and is tried again later.

Source: PopConsumerService.reviveRetry, RocketMQ 5.3.4, which has no dead letters, and
gives a message up after 16 attempts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names, retry_names
from ropeway.gateway.node.record_builder import store_again
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.node.timer.record_reader import read_scattered
from ropeway.gateway.wire import message, message_id, properties, receipt
from ropeway.gateway.wire.errors import MessageError, WireError
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.groups import Groups
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.pop.order import Place
    from ropeway.gateway.wire.message import Message
    from ropeway.routing.api import Group

log = structlog.get_logger(__name__)

_BACK_OFF_S = (
    *(10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600),
    *(1200, 1800, 3600, 7200),
)
"""REWRITE_INTERVALS_IN_SECONDS; the last one again and again."""

_NOTED = frozenset(
    {
        properties.FIRST_POP_TIME,
        properties.RETRY_TOPIC,
        properties.ORIGIN_MESSAGE_ID,
        properties.DLQ_ORIGIN_TOPIC,
        properties.DLQ_ORIGIN_MESSAGE_ID,
    }
)


def back_off_ms(attempts: int) -> int:
    """How long to wait before storing again is tried once more."""
    return _BACK_OFF_S[min(attempts, len(_BACK_OFF_S) - 1)] * 1000


def original_topic(group: str, topic: str) -> str:
    """The topic that was asked for, of one that may be a retry topic of it."""
    prefix = names.RETRY_PREFIX + group
    if topic.startswith((prefix + "_", prefix + "+")):
        return topic[len(prefix) + 1 :]
    return topic


class Revive:
    """Stores messages again that come back.

    Args:
        broker: Whose they are; its offsets tell which retry topics groups have.
        groups: Say how often a message may come.
        timer: The topic of messages that wait.
        retry: The kind of retry topic that is written: RETRY_V1 or RETRY_V2; v2 also
            where the name of v1 is another group's, too.
    """

    def __init__(
        self,
        broker: BrokerContext,
        groups: Groups,
        timer: Callable[[], ServedTopic],
        retry: int,
    ) -> None:
        self._topics = broker.topics
        self._groups = groups
        self._log = broker.log
        self._timer = timer
        self._offsets = broker.offsets
        self._retry = retry

    async def bring(
        self,
        place: Place,
        offsets: Sequence[int],
        pop_ms: int,
        due_ms: int | None = None,
    ) -> set[int]:
        """Store messages of a queue again.

        Args:
            place: Group, topic and queue id.
            offsets: The messages, in order.
            pop_ms: When they were handed out.
            due_ms: When they are to come, by the broker's timer; None for now.

        Returns:
            The offsets of those that stay out.
        """
        group_name, topic_name, queue_id = place
        topic = self._topics.get(topic_name)
        group = self._groups.get(group_name)
        if topic is None or group is None or queue_id >= len(topic.partitions):
            return set()
        try:
            partition = topic.partitions[queue_id]
            await self._log.ready(topic.name, (partition.number,))
            records = await read_scattered(partition, list(offsets))
            found = [message.decode(record) for record in records.values()]
            return await self._store(group, topic, found, pop_ms, due_ms)
        except NoSuchPartitionError:
            return set()
        except (LogError, RouteError, WireError) as error:
            log.warning(
                "popped messages cannot be stored again now",
                group=group_name,
                topic=topic_name,
                queue_id=queue_id,
                messages=len(offsets),
                reason=str(error),
            )
            return set(offsets)

    async def _store(
        self,
        group: Group,
        topic: ServedTopic,
        found: list[Message],
        pop_ms: int,
        due_ms: int | None,
    ) -> set[int]:
        stored = []
        for one in found:
            dead = one.reconsume_times >= group.retry_max_times
            name = names.dlq_topic(group.name) if dead else self._name(group, topic)
            if not dead and self._offsets.get(group.name, name, 0) is None:
                # From here on it is known whose messages these are.
                self._offsets.commit(group.name, name, 0, 0)
            target = self._topics.get(name)
            if target is None:
                target = await self._topics.ensure_derived(name, 1)
            await self._log.ready(name)
            pairs = properties.parse(one.properties)
            pairs.pop(properties.POP_CK, None)
            if dead:
                _bury(group, one, pairs)
            else:
                pairs.setdefault(properties.FIRST_POP_TIME, str(pop_ms))
            if due_ms is not None:
                pairs = pending_timers.pairs_until(due_ms, name, 0, pairs)
                target = self._timer()
            stored.append(self._append(target, one, pairs))
        outcomes = await asyncio.gather(*stored, return_exceptions=True)
        failed = {
            one.queue_offset: outcome
            for one, outcome in zip(found, outcomes, strict=True)
            if isinstance(outcome, BaseException)
        }
        if failed:
            log.warning(
                "popped messages could not be stored again",
                group=group.name,
                topic=topic.name,
                messages=len(failed),
                reason=str(next(iter(failed.values()))),
            )
        return set(failed)

    def _name(self, group: Group, topic: ServedTopic) -> str:
        if topic.retry_kind != receipt.NORMAL:
            return topic.name
        name = receipt.retry_topic(group.name, topic.name, self._retry)
        place = name, group.name, topic.name
        if self._retry == receipt.RETRY_V1 and retry_names.is_shared(
            *place, self._groups, self._offsets
        ):
            return receipt.retry_topic(group.name, topic.name, receipt.RETRY_V2)
        return name

    def _append(
        self, target: ServedTopic, one: Message, pairs: dict[str, str]
    ) -> asyncio.Future[int]:
        times = one.reconsume_times + 1
        try:
            try:
                return store_again(target, 0, one, pairs, times)
            except MessageError:
                # What was noted for people is too much. It must not stay out for ever.
                own = {name: pairs[name] for name in pairs if name not in _NOTED}
                return store_again(target, 0, one, own, times)
        except (LogError, WireError) as error:
            failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed


def _bury(group: Group, one: Message, pairs: dict[str, str]) -> None:
    """Say in a dead letter's properties where it comes from."""
    topic = original_topic(group.name, one.topic)
    topic = names.origin_of(topic, pairs.get(properties.RETRY_TOPIC))
    pairs[properties.RETRY_TOPIC] = pairs[properties.DLQ_ORIGIN_TOPIC] = topic
    origin = message_id.format_offset_msg_id(*one.store_host, one.message_id)
    pairs.setdefault(properties.ORIGIN_MESSAGE_ID, origin)
    pairs.setdefault(properties.DLQ_ORIGIN_MESSAGE_ID, origin)
    log.warning(
        "popped message is a dead letter now",
        group=group.name,
        topic=topic,
        unique_key=pairs.get(properties.UNIQ_KEY),
        times=one.reconsume_times + 1,
    )
