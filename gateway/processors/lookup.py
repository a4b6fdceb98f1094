"""Finding one stored message by its message id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.node import names
from gateway.processors.context import Refusal
from gateway.wire import message_id
from gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from gateway.node.node import Node
    from gateway.node.topics import ServedTopic


async def stored(
    node: Node, identity: int, topic: str | None, *, group: str | None = None
) -> bytes:
    """The bytes of the message with that id.

    Args:
        node: Where to look.
        identity: The 64-bit message id.
        topic: The topic that the client names; clients before 5.0 name none. Of a
            retried message they name the one that it was sent to first.
        group: The group whose retry topic an id with the retry bit means.

    Raises:
        MessageError: The id is not one.
        Refusal: There is no such message, or without a topic there are several.
    """
    retry, partition, offset = message_id.unpack(identity)
    if retry and group is not None:
        topic = names.retry_topic(group)
    if topic is not None and retry == topic.startswith(names.RETRY_PREFIX):
        served = node.topics.get(topic)
        candidates = [served] if served is not None else []
    else:
        candidates = node.topics.with_partition(partition, retry=retry)
    found = [
        (one.name, data)
        for one in candidates
        if (data := await _read(one, partition, offset)) is not None
    ]
    if len(found) == 1:
        return found[0][1]
    if not found:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {identity}"
        )
    raise Refusal(
        ResponseCode.SYSTEM_ERROR,
        f"message id {identity} is in {len(found)} topics, {found[0][0]} and "
        f"{found[1][0]} among them; ask with the topic",
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
