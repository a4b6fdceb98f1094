"""What is answered to a pull: messages, or why there are none and where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.codes import ROPEWAY_VERSION
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.frame import begin_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.codes import ResponseCode
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.routing.api import Group
    from ropeway.storage.api import Partition

# A `PullReply` as `encode_frame` would make it, with room for what differs.
_FOUND = (
    b'{"code":0,"extFields":{"suggestWhichBrokerId":"%d","groupSysFlag":"%d",'
    b'"nextBeginOffset":"%d","maxOffset":"%d","minOffset":"%d","topicSysFlag":"%d"},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",'
    b'"serializeTypeCurrentRPC":"JSON","version":'
    + str(ROPEWAY_VERSION).encode()
    + b"}"
)


def found_frame(answer: Any, opaque: int) -> bytes:
    """The frame of an answer with messages, but for these."""
    reply: PullReply = answer.header
    header = _FOUND % (
        reply.suggest_which_broker_id,
        reply.group_sys_flag,
        reply.next_begin_offset,
        reply.max_offset,
        reply.min_offset,
        reply.topic_sys_flag,
        opaque,
    )
    return begin_frame(header, sum(map(len, answer.records)))


def answer(
    code: ResponseCode,
    remark: str,
    next_offset: int,
    topic: ServedTopic,
    group: Group,
    partition: Partition,
    records: Sequence[Buffer] = (),
) -> Answer:
    """The answer with messages, whose remark is FOUND, or without."""
    reply = PullReply(
        group.broker_id,
        next_offset,
        partition.first,
        partition.end,
        topic_sys_flag=topic.setup.topic_sys_flag,
        group_sys_flag=group.group_sys_flag,
    )
    template = found_frame if records else None
    return Answer(code, remark, reply, None, b"", records, template)
