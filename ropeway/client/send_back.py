"""Messages that could not be handled go back to a broker, to come again later.

Source: DefaultMQPushConsumerImpl.sendMessageBack and
ConsumeMessageOrderlyService.sendMessageBack, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client import send_request
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack

if TYPE_CHECKING:
    from ropeway.client.instance import Instance
    from ropeway.client.message import ReceivedMessage

DEFAULT_MAX_RECONSUME_TIMES = 16

_INNER_PRODUCER = "CLIENT_INNER_PRODUCER"
_FIRST_LEVEL = 3


async def send_back(
    instance: Instance, group: str, message: ReceivedMessage, max_times: int | None
) -> None:
    """Let a broker deliver a message again; after `max_times` it is a dead letter.

    The broker copies it, so that it costs no second transfer.

    Raises:
        RemotingError: The broker did not take it.
    """
    header = ConsumerSendMsgBack(
        offset=message.message_id,
        group=group,
        delay_level=0,
        origin_msg_id=message.msg_id,
        origin_topic=message.topic,
        max_reconsume_times=DEFAULT_MAX_RECONSUME_TIMES
        if max_times is None
        else max_times,
    )
    address = instance.routes.master(message.queue.broker_name)
    await instance.connections.request(address, header)


async def send_to_dead_letters(
    instance: Instance, group: str, message: ReceivedMessage, max_times: int
) -> None:
    """Give up on an orderly message: send it as a retry that is beyond the limit.

    Raises:
        RemotingError: The broker did not take it.
    """
    times = message.reconsume_times + 1
    properties = {
        **message.properties,
        names.RETRY_TOPIC: message.topic,
        names.RECONSUME_TIME: str(times),
        names.MAX_RECONSUME_TIMES: str(max_times),
        names.DELAY: str(_FIRST_LEVEL + message.reconsume_times),
    }
    properties.setdefault(names.ORIGIN_MESSAGE_ID, message.msg_id)
    properties.pop(names.TRANSACTION_PREPARED, None)
    topic = f"{send_request.RETRY_PREFIX}{group}"
    queue = MessageQueue(topic, message.queue.broker_name, 0)
    header = send_request.single_request(
        _INNER_PRODUCER, queue, properties, flag=message.flag
    )
    address = instance.routes.master(queue.broker_name)
    await instance.connections.request(
        address, header, message.body, expect=send_request.STATUS_OF_CODE
    )
