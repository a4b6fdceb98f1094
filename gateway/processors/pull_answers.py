"""What is answered to a pull: messages, or why there are none and where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.frame import begin_frame

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.routing.api import Group
    from ropeway.storage.api import Chunk, Partition

# A `PullReply` as `encode_frame` would make it, with room for what differs.
_FOUND = (
    b'{"code":0,"extFields":{"suggestWhichBrokerId":"%d","groupSysFlag":"%d",'
    b'"nextBeginOffset":"%d","maxOffset":"%d","minOffset":"%d","topicSysFlag":"%d"},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",'
    b'"serializeTypeCurrentRPC":"JSON","version":'
    + str(ROPEWAY_VERSION).encode()
    + b"}"
)


class Found(Answer, frozen=True):
    """Messages for a pull; its header is a `PullReply`."""

    def frame(self, opaque: int) -> tuple[Buffer, ...]:
        """Make the frame from a template."""
        reply = self.header
        assert isinstance(reply, PullReply), "found() makes it"
        header = _FOUND % (
            reply.suggest_which_broker_id,
            reply.group_sys_flag,
            reply.next_begin_offset,
            reply.max_offset,
            reply.min_offset,
            reply.topic_sys_flag,
            opaque,
        )
        return begin_frame(header, sum(map(len, self.records))), *self.records


def found(
    topic: ServedTopic, group: Group, partition: Partition, chunk: Chunk
) -> Answer:
    """The answer with messages."""
    reply = _reply(topic, group, partition, chunk.next_offset)
    return Found(ResponseCode.SUCCESS, "FOUND", reply, records=chunk.data)


def empty(
    code: ResponseCode,
    remark: str,
    next_offset: int,
    topic: ServedTopic,
    group: Group,
    partition: Partition,
) -> Answer:
    """The answer without messages."""
    return Answer(code, remark, _reply(topic, group, partition, next_offset))


def _reply(
    topic: ServedTopic, group: Group, partition: Partition, next_offset: int
) -> PullReply:
    return PullReply(
        suggest_which_broker_id=group.broker_id,
        next_begin_offset=next_offset,
        min_offset=partition.first,
        max_offset=partition.end,
        topic_sys_flag=topic.setup.topic_sys_flag,
        group_sys_flag=group.group_sys_flag,
    )
