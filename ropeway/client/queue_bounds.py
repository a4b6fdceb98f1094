"""What brokers know of a queue's ends and times.

Source: MQAdminImpl.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.errors import ConnectionFailedError
from ropeway.client.message import ConsumeFrom
from ropeway.gateway.wire.commands.offsets import (
    GetMaxOffset,
    GetMinOffset,
    Offset,
    SearchOffset,
)

if TYPE_CHECKING:
    from ropeway.client.instance import Instance
    from ropeway.client.message import MessageQueue
    from ropeway.gateway.wire.header import Header


async def begin_offset(instance: Instance, queue: MessageQueue) -> int:
    """The offset of a queue's oldest message.

    Raises:
        RemotingError: The broker did not say.
    """
    header = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id)
    return await _ask(instance, queue, header)


async def end_offset(instance: Instance, queue: MessageQueue) -> int:
    """The offset that a queue's next message will get.

    Raises:
        RemotingError: The broker did not say.
    """
    header = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id)
    return await _ask(instance, queue, header)


async def offset_for_timestamp(
    instance: Instance, queue: MessageQueue, timestamp_ms: int
) -> int:
    """The offset of the first message stored at or after a time.

    Where there is none it is the queue's end; 4.9 brokers then give one less.

    Args:
        instance: The client.
        queue: Where to look.
        timestamp_ms: Milliseconds since 1970, by the broker's clock.

    Raises:
        RemotingError: The broker did not say.
    """
    header = SearchOffset(
        topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
    )
    return await _ask(instance, queue, header)


async def start_offset(
    instance: Instance, queue: MessageQueue, where: ConsumeFrom, time_ms: int
) -> int:
    """Where a group begins that has never read a queue.

    Args:
        instance: The client.
        queue: Which one.
        where: At its beginning, at its end, or at a time.
        time_ms: That time, in milliseconds since 1970.

    Raises:
        RemotingError: The broker did not say.
    """
    if where is ConsumeFrom.LAST_OFFSET:
        return await end_offset(instance, queue)
    if where is ConsumeFrom.TIMESTAMP:
        return await offset_for_timestamp(instance, queue, time_ms)
    return await begin_offset(instance, queue)


async def _ask(instance: Instance, queue: MessageQueue, header: Header) -> int:
    await instance.routes.get(queue.topic)
    address = instance.routes.master(queue.broker_name)
    try:
        response = await instance.connections.request(address, header)
    except ConnectionFailedError:
        # The broker may have another master when it is asked again.
        await instance.routes.refresh()
        raise
    return response.header(Offset).offset
