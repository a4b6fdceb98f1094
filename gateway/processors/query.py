"""Looking messages up by id, and by key within a time range.

Source: QueryMessageProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, PUB, SUB, on_topic, on_topic_if_given
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.query import (
    NoteResend,
    QueryMessage,
    QueryReply,
    ViewMessage,
)

MAX_FOUND = 64
"""maxMsgsNumBatch's default, and the most for one query by unique key too."""

_WAITING_BYTES = 4096
"""What a look-up by key takes while it waits for those before it, about."""


@handles(ViewMessage, on_topic_if_given(SUB, GET), reads=True)
async def view_message(request: ViewMessage, context: Context) -> Answer:
    """The message that an offsetMsgId names."""
    actions = (SUB, GET)
    found = await lookup.permitted(context, request.offset, request.topic, actions)
    return Answer(body=found)


@handles(NoteResend, on_topic(PUB, field="to_topic"), anywhere=True)
def note_resend(_: NoteResend, __: Context) -> Answer:
    """Nothing: that it came is in the audit log, and what is sent comes by itself."""
    return Answer()


@handles(QueryMessage, on_topic(SUB, GET), reads=True)
async def query_message(request: QueryMessage, context: Context) -> Answer:
    """Messages of a topic that have a key, oldest first as a real broker has them."""
    if context.node.topics.get(request.topic) is None:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND,
            f"can not find message, topic[{request.topic:.200}] not exist",
        )
    # A log may know only of partitions that are open, and find less without a word.
    await context.node.log.ready(request.topic)
    slices = context.slices()
    await slices.begin_large(_WAITING_BYTES)
    try:
        if context.peer.closed:
            return Answer()
        found = await context.node.log.query(
            request.topic,
            request.key,
            request.begin_timestamp,
            request.end_timestamp,
            min(max(request.max_num, 1), MAX_FOUND),
        )
    finally:
        slices.end_large()
    records = [one.data for one in found if _has_key(one.data, request)]
    if not records:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range wrong"
        )
    last = message.decode(records[0])
    reply = QueryReply(
        index_last_update_timestamp=last.store_ms,
        index_last_update_phyoffset=last.message_id,
    )
    return Answer(header=reply, body=b"".join(reversed(records)))


def _has_key(record: bytes, request: QueryMessage) -> bool:
    """Whether the key is the message's own: the index keeps hashes."""
    pairs = properties.parse(message.view_properties(record).decode())
    if request.unique_key_query:
        return pairs.get(properties.UNIQ_KEY) == request.key
    return request.key in properties.key_words(pairs)
