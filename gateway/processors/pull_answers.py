"""What is answered to a pull: messages, or why there are none and where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.processors.context import Answer
from gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from gateway.wire.commands.pull import PullReply
from gateway.wire.frame import PREFIX

if TYPE_CHECKING:
    from gateway.node.served_topic import ServedTopic
    from gateway.processors.context import Context
    from routing.api import Group
    from storage.api import Chunk, Partition

# A `PullReply` as `encode_frame` would make it, with room for what differs.
_FOUND = (
    b'{"code":0,"extFields":{"suggestWhichBrokerId":"%d","groupSysFlag":"%d",'
    b'"nextBeginOffset":"%d","maxOffset":"%d","minOffset":"%d","topicSysFlag":"%d"},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",'
    b'"serializeTypeCurrentRPC":"JSON","version":'
    + str(ROPEWAY_VERSION).encode()
    + b"}"
)


def found(
    context: Context,
    topic: ServedTopic,
    group: Group,
    partition: Partition,
    chunk: Chunk,
) -> None:
    """Answer with messages."""
    header = _FOUND % (
        group.broker_id,
        group.group_sys_flag,
        chunk.next_offset,
        partition.end,
        partition.first,
        topic.setup.topic_sys_flag,
        context.opaque,
    )
    context.node.traffic.pulled(topic.name, group.name, chunk.records)
    size = len(header)
    body_bytes = sum(map(len, chunk.data))
    context.respond(PREFIX.pack(size + 4 + body_bytes, size) + header, *chunk.data)


def empty(
    code: ResponseCode,
    remark: str,
    next_offset: int,
    topic: ServedTopic,
    group: Group,
    partition: Partition,
) -> Answer:
    """The answer without messages."""
    header = PullReply(
        suggest_which_broker_id=group.broker_id,
        next_begin_offset=next_offset,
        min_offset=partition.first,
        max_offset=partition.end,
        topic_sys_flag=topic.setup.topic_sys_flag,
        group_sys_flag=group.group_sys_flag,
    )
    return Answer(code, remark, header)
