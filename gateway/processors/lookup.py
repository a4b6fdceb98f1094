"""Finding what a request names: a topic, a queue of it, a stored message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.processors.context import Refusal
from ropeway.gateway.processors.needs import topic_needs
from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.acl.api import Action
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.processors.context import Context
    from ropeway.storage.api import Partition


def find_topic(node: Node, name: str) -> ServedTopic:
    """The topic of that name.

    Raises:
        Refusal: There is none.
    """
    served = node.topics.get(name)
    if served is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name:.200}] not exist")
    return served


def find_partition(node: Node, name: str, queue_id: int) -> Partition:
    """The partition behind a queue of a topic.

    Raises:
        Refusal: There is no such topic, or it has no such queue.
    """
    partitions = find_topic(node, name).partitions
    if not 0 <= queue_id < len(partitions):
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{queue_id}] is illegal, topic {name} has queues "
            f"0 to {len(partitions) - 1}",
        )
    return partitions[queue_id]


async def permitted(
    context: Context,
    identity: int,
    topic: str | None,
    actions: tuple[Action, ...],
    *,
    group: str | None = None,
) -> bytes:
    """As `stored`, of the messages on whose topic a client may do one of the actions.

    What it says of the topic counts for nothing, and of other messages it does not
    learn whether they are there.

    Raises:
        Refusal: There is no such message for it, or without a topic there are several.
    """
    node = context.node
    found = [
        (name, data)
        for name, data in await _found(node, identity, topic, group)
        if await context.may(*topic_needs(node, name, actions))
    ]
    return _only(identity, found)


async def stored(
    node: Node, identity: int, topic: str | None, *, group: str | None = None
) -> bytes:
    """The bytes of the message with that id.

    Args:
        node: Where to look.
        identity: The 64-bit message id.
        topic: The topic that the client names; clients before 5.0 name none. Of a
            retried message they name the one that it was sent to first.
        group: The group whose retry topic an id with the retry bit means, and which
            consumed the message.

    Raises:
        MessageError: The id is not one.
        Refusal: There is no such message, or without a topic there are several.
    """
    return _only(identity, await _found(node, identity, topic, group))


async def _found(
    node: Node, identity: int, topic: str | None, group: str | None
) -> list[tuple[str, bytes]]:
    """The messages that an id may mean, each with its topic."""
    retry, partition, offset = message_id.unpack(identity)
    if retry and group is not None:
        topic = names.retry_topic(group)
    if topic is not None and retry == topic.startswith(names.RETRY_PREFIX):
        served = node.topics.get(topic)
        hidden = topic in names.NOT_FOR_READING
        candidates = [served] if served is not None and not hidden else []
    else:
        # Of many topics few have such an offset. No other's partition need be opened.
        candidates = [
            one
            for one in node.topics.with_partition(partition, retry=retry)
            if _may_have(one, partition, offset)
        ]
        if group is not None:
            candidates = _consumed(node, group, candidates) or candidates
    return [
        (one.name, data)
        for one in candidates
        if (data := await _read(one, partition, offset)) is not None
    ]


def _only(identity: int, found: list[tuple[str, bytes]]) -> bytes:
    if len(found) == 1:
        return found[0][1]
    if not found:
        raise missing(identity)
    raise Refusal(
        ResponseCode.SYSTEM_ERROR,
        f"message id {identity} is in {len(found)} topics, {found[0][0]} and "
        f"{found[1][0]} among them; ask with the topic",
    )


def missing(identity: int) -> Refusal:
    """What is answered where there is no message with an id, or none for the client."""
    return Refusal(
        ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {identity}"
    )


def _consumed(
    node: Node, group: str, candidates: list[ServedTopic]
) -> list[ServedTopic]:
    """Those topics that the members of a group have subscribed to."""
    connected = node.clients.consumer_group(group)
    wanted = connected.subscriptions if connected else {}
    return [one for one in candidates if one.name in wanted]


def _may_have(topic: ServedTopic, number: int, offset: int) -> bool:
    return any(
        one.number == number and offset < one.last_end for one in topic.partitions
    )


async def _read(topic: ServedTopic, number: int, offset: int) -> bytes | None:
    for partition in topic.partitions:
        if partition.number == number:
            if not partition.first <= offset < partition.end:
                return None
            chunk = await partition.read(offset, 1, 1)
            if chunk.records == 0 or chunk.next_offset != offset + 1:
                return None
            return bytes(chunk.data[0])
    return None


def page_of(names: Iterable[str], first: int | None, count: int | None) -> list[str]:
    """A page of names in their order; all of them, where none is asked for."""
    begin = max(first or 0, 0)
    return sorted(names)[begin : None if count is None else begin + count]
