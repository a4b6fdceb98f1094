"""One pull: which broker node is asked, with which flags, and what came back.

Source: PullAPIWrapper.java and DefaultMQPushConsumerImpl.pullMessage, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.client.received import read_answer
from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import (
    COMMIT_OFFSET_FLAG,
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullMessage,
    PullReply,
)

if TYPE_CHECKING:
    from ropeway.client.config import ConsumerConfig
    from ropeway.client.instance import Instance
    from ropeway.client.message import MessageQueue, ReceivedMessage
    from ropeway.client.subscription import Subscription

_EXPECTED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


class Pulled(NamedTuple):
    """What a pull found."""

    messages: list[ReceivedMessage]
    """Only those that the subscription wants."""
    next_offset: int
    moved: bool
    """The offset is not in the queue, or was reset: reading goes on elsewhere."""


class Puller:
    """Pulls from any queue for one group.

    Args:
        instance: The client.
        group: The consumer group.
        config: Sizes and times of a pull.
    """

    # Java's lite pull consumer asks by LITE_PULL_MESSAGE, which 4.9 does not know and
    # which is answered in the same way.

    def __init__(self, instance: Instance, group: str, config: ConsumerConfig) -> None:
        self._instance = instance
        self._group = group
        self._config = config
        self._suggested: dict[MessageQueue, int] = {}

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        subscription: Subscription,
        commit_offset: int | None,
    ) -> Pulled:
        """Read what a queue has from an offset on; waits for news at its end.

        The pull carries the subscription, so that a broker that was restarted filters
        rightly before it has got a heartbeat.

        Args:
            queue: Where to read.
            offset: The first that is wanted.
            subscription: What is wanted.
            commit_offset: Stored on the way where the master is asked.

        Raises:
            RemotingError: Nothing could be read.
        """
        wished = self._suggested.get(queue, MASTER_ID)
        node, address = self._instance.routes.reader(queue.broker_name, wished)
        commits = bool(commit_offset) and node == MASTER_ID
        config = self._config
        header = PullMessage(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=config.pull_batch,
            sys_flag=SUSPEND_FLAG | SUBSCRIPTION_FLAG | (COMMIT_OFFSET_FLAG * commits),
            commit_offset=commit_offset or 0,
            suspend_timeout_millis=int(config.pull_wait_s * 1000),
            sub_version=subscription.version,
            subscription=subscription.expression,
            expression_type=subscription.expression_type,
            bulk=True,
        )
        response = await self._instance.connections.request(
            address,
            header,
            timeout_s=config.pull_wait_s + config.pull_margin_s,
            expect=_EXPECTED,
        )
        reply = response.header(PullReply)
        self._suggested[queue] = reply.suggest_which_broker_id
        found: list[ReceivedMessage] = []
        if response.code == ResponseCode.SUCCESS:
            found = await read_answer(response.body, queue.broker_name)
        return Pulled(
            [message for message in found if subscription.wants(message.tags)],
            reply.next_begin_offset,
            response.code == ResponseCode.PULL_OFFSET_MOVED,
        )

    def forget(self, queue: MessageQueue) -> None:
        """Forget which node a queue was to be read from."""
        self._suggested.pop(queue, None)
