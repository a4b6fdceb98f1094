"""Sends to a topic that has not moved here, or is about to: its source stores them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ropeway.client.errors import RemotingError
from ropeway.gateway.processors.context import Answer, NotPreparedError, Refusal
from ropeway.gateway.processors.lead_back import (
    change_setup,
    check_rights,
    goes_back,
    lead_back,
    refusal,
)
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import FINISHED, HELD
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.header import to_fields
from ropeway.gateway.wire.message import TRANSACTION_MASK
from ropeway.gateway.wire.properties import TRANSACTION_PREPARED
from ropeway.routing.api import AT_SOURCE, PASSED_ON, STORED

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.source_sends import SourceSends
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.wire.commands.admin import CreateTopic
    from ropeway.gateway.wire.commands.send import SendMessage
    from ropeway.routing.api import Topic


async def pass_on(request: SendMessage, context: Context) -> Answer:
    """Have the migration's source store a message or a batch.

    Raises:
        NotPreparedError: It is held, or stored here by now.
        Refusal: The source did not store it; or a transaction has to wait, since that
            one's end would come here.
    """
    node = context.node
    source, topic = node.source, node.topics.get(request.topic)
    if source is None:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"topic[{request.topic}] is sent on to a source, and this node knows none; "
            "start it with --migrate-from",
        )
    sends = source.sends
    if topic is not None and not (topic.setup.mirrored or sends.is_held(topic.name)):
        # It was held to go back to the source, and that did not come.
        topic.passed_on = False
    if (topic is not None and not topic.passed_on) or sends.is_held(request.topic):
        released = partial(sends.released, request.topic)
        raise NotPreparedError(request.topic, released)
    pairs = properties.parse(request.properties)
    if request.sys_flag & TRANSACTION_MASK or TRANSACTION_PREPARED in pairs:
        raise Refusal(
            ResponseCode.SYSTEM_BUSY,
            f"topic[{request.topic}] has not moved here yet; transactions begin after "
            "that, try again",
        )
    ours = node.routes.brokers
    known = node.routes.topics.get(request.topic)
    # Another broker that has it holds what is sent when it moves.
    is_others = topic is None and known is not None and not known.is_at_source
    if is_others or (topic is None and await source.find(request.topic, ours) is None):
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] not exist, apply first please!",
        )
    queues = len(topic.partitions) if topic is not None else None
    try:
        answer, queue_id = await sends.send(
            msgspec.structs.replace(request, bname=None), context.body, queues, ours
        )
    except RemotingError as error:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR, f"the migration's source: {error}"
        ) from error
    fields = msgspec.json.decode(answer.fields, type=dict[str, str] | None)
    header = None
    if queue_id is not None:
        header = msgspec.structs.replace(answer.header(SendReply), queue_id=queue_id)
        fields = {
            name: value
            for name, value in (fields or {}).items()
            if name not in to_fields(header)
        }
    return Answer(answer.code, answer.remark, header, fields, answer.body)


async def lead_writes(request: CreateTopic, context: Context) -> None:
    """Have producers' messages of a topic be stored elsewhere, and nothing else.

    Raises:
        Refusal: It does not migrate; or they could be stored at both, or at neither.
    """
    topic = context.node.topics.get(request.topic)
    if request.writes == FINISHED:
        await _finish(request.topic, context)
    elif topic is not None and goes_back(request, topic):
        await lead_back(request, context, topic)
    else:
        await _lead_here(request, context, topic)


async def _lead_here(
    request: CreateTopic, context: Context, topic: ServedTopic | None
) -> None:
    """A step of a mirror that is cut over."""
    node, name, wanted = context.node, request.topic, request.writes
    sends = node.source.sends if node.source is not None else None
    if topic is None or not topic.setup.mirrored:
        raise refusal(f"topic {name} is no mirror")
    if sends is None:
        raise refusal("this node knows no source; start it with --migrate-from")
    if complaint := _complaint(request, topic, sends):
        raise refusal(complaint)
    if wanted == HELD:
        await sends.hold(name, request.hold or "")
        return

    if wanted == PASSED_ON:
        await check_rights(context, name)
    cut_offsets: list[int] = []

    def led(old: Topic) -> Topic:
        return msgspec.structs.replace(
            old, writes=wanted or AT_SOURCE, cut_offsets=cut_offsets
        )

    if wanted == STORED:
        # Nothing is sent on any more, however long it takes to write that down.
        sends.hold_on(name)
        cut_offsets = [one.next_offset for one in topic.partitions]
    try:
        await change_setup(context, name, led)
    finally:
        sends.release(name)
    if wanted == STORED:
        sends.forget(name)


async def _finish(name: str, context: Context) -> None:
    """Forget that a topic came from a source.

    Raises:
        Refusal: It did not, or it has not been cut over.
    """
    topic = context.node.topics.get(name)
    if topic is None or topic.setup.mirrored or not topic.setup.cut_offsets:
        raise refusal(f"topic {name} was not cut over, or is finished")

    def finished(old: Topic) -> Topic:
        return msgspec.structs.replace(old, cut_offsets=[])

    await change_setup(context, name, finished)


def _complaint(
    request: CreateTopic, topic: ServedTopic, sends: SourceSends
) -> str | None:
    name, now, wanted = topic.name, topic.setup.writes, request.writes
    allowed = (AT_SOURCE, PASSED_ON, HELD, STORED)
    if wanted not in allowed:
        return f"writes is {wanted!r:.80}; allowed: {', '.join(allowed)}"
    if wanted in (HELD, STORED) and now == AT_SOURCE:
        return f"messages of topic {name} are not sent on to the source yet"
    if wanted == STORED and not sends.is_held(name, request.hold or ""):
        return f"messages of topic {name} were held for too long; try again"
    if wanted == STORED and _lacks(topic, sends):
        return f"the mirror of topic {name} lacks messages; copy them, try again"
    if now == STORED:
        return f"messages of topic {name} are stored here already"
    return None


def _lacks(topic: ServedTopic, sends: SourceSends) -> bool:
    return any(
        queue_id >= len(topic.partitions)
        or topic.partitions[queue_id].next_offset < end
        for queue_id, end in sends.ends(topic.name).items()
    )
