"""Batches: all their messages are stored, in one append, or none is.

A large one is made in slices, and others have their turns in between; what is sent to
the same queue meanwhile waits behind it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ropeway.common.clock import now_ms
from ropeway.gateway.node import message_keys, names, record_builder
from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.node.timer.pending_timers import ASKED
from ropeway.gateway.processors.context import (
    Context,
    Made,
    NotPreparedError,
    Refusal,
)
from ropeway.gateway.processors.fast_failure import BUSY
from ropeway.gateway.processors.send_store import stored
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.batch import (
    SLICE_BYTES,
    SLICE_MESSAGES,
    count_up_to,
    cut,
    decode_batch,
    has_more_than,
)
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendMessage
from ropeway.gateway.wire.send_codec import NO_MARK, plain_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import RecordParts

_SLICE_S = 0.001
_MADE_BYTES = 5
"""What records take in memory for each byte of a batch of small messages, about."""


def check_batch(body: bytes, allowed: int) -> int:
    """Refuse a batch with more messages than it may have, before any is read.

    Returns:
        How many it has; 0: it is too short for more than are allowed.

    Raises:
        Refusal: It has.
    """
    count = count_up_to(allowed + 1, body)
    if count > allowed:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"more than {allowed} messages in a batch; allowed: {allowed}",
        )
    return count


class _Batch(msgspec.Struct, frozen=True, gc=False):
    """A batch, and where its messages go."""

    request: SendMessage
    context: Context
    topic: ServedTopic
    queue_id: int
    offset: int
    """The first message's."""
    store_ms: int

    def records(self) -> Sequence[RecordParts]:
        """Make the records without a pause, or refuse the batch."""
        data = self.context.body
        self.check_keys(data, 0)
        return self.plain(data, 0) or self.careful(data, 0)

    def check_keys(self, data: bytes, before: int) -> None:
        """Refuse messages without a key, where their topic wants one."""
        if self.topic.compacted:
            for entry in decode_batch(data, before):
                message_keys.check(properties.parse(entry.properties))

    def check_care(self) -> None:
        """Refuse too many messages that are not plain.

        Each takes several times as long as a plain one.
        """
        allowed = self.context.node.config.requests.batch_messages
        check_batch(self.context.body, allowed // 2)

    def plain(self, data: bytes, before: int) -> Sequence[RecordParts] | None:
        """Make the records of plain messages; None where one is not plain.

        Args:
            data: The batch, or a part of it.
            before: How many messages of the batch stand in front of those.
        """
        request, peer, topic = self.request, self.context.peer, self.topic
        return plain_batch(
            topic.magic,
            topic.name_field,
            self.queue_id,
            request.sys_flag,
            request.born_timestamp,
            peer.packed_address,
            self.store_ms,
            peer.packed_advertised,
            request.reconsume_times or 0,
            self.context.node.property_suffix,
            self.offset + before,
            topic.id_bases[self.queue_id],
            NO_MARK,
            data,
        )

    def careful(self, data: bytes, before: int) -> Sequence[RecordParts]:
        """Make the records of messages that need not be plain; see `plain`."""
        request, peer = self.request, self.context.peer
        records = []
        for offset, entry in enumerate(
            decode_batch(data, before), self.offset + before
        ):
            text, pairs = properties.ended(entry.properties)
            if pairs.get(properties.TRANSACTION_PREPARED, "").lower() == "true":
                raise no_batch("transaction")
            if pairs.get(properties.DELAY, "0") != "0" or not ASKED.isdisjoint(pairs):
                raise no_batch("delay")
            records.append(
                record_builder.make_record(
                    self.topic,
                    self.queue_id,
                    offset,
                    self.store_ms,
                    record_builder.NewMessage(
                        body=entry.body,
                        properties=text + self.context.node.property_suffix,
                        flag=entry.flag,
                        sys_flag=request.sys_flag,
                        born_ms=request.born_timestamp,
                        born_host=peer.packed_address,
                        store_host=peer.packed_advertised,
                        reconsume_times=request.reconsume_times or 0,
                    ),
                )
            )
        return records


def send_batch(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> None:
    """Store a batch.

    Raises:
        NotPreparedError: It is large, and has to be made first.
    """
    if topic.name.startswith(names.RETRY_PREFIX):
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"batch request does not support retry group {topic.name}",
        )
    made = context.made
    if made is not None and made.queue_id < len(topic.partitions):
        queue_id = made.queue_id  # it may have been drawn
    partition = topic.partitions[queue_id]
    batch = _Batch(request, context, topic, queue_id, partition.next_offset, now_ms())
    store_ms = batch.store_ms
    if made is None:
        records = _records(batch)
    elif made.partition is partition and made.offset == partition.next_offset:
        records, store_ms = made.records, made.store_ms
    else:
        # Somebody has appended who does not wait for sends, as timers do.
        records = batch.records()
    id_base = topic.id_bases[queue_id]
    unique_key = properties.parse(request.properties).get(properties.UNIQ_KEY, "")
    done = partial(stored, context, queue_id, unique_key, id_base, len(records), b"")
    partition.append(records, store_ms, done)


def _records(batch: _Batch) -> Sequence[RecordParts]:
    body, allowed = batch.context.body, batch.context.node.config.requests
    if check_batch(body, allowed.batch_messages) > SLICE_MESSAGES:
        raise _large(batch)
    batch.check_keys(body, 0)
    if records := batch.plain(body, 0):
        return records
    batch.check_care()
    if len(body) > SLICE_BYTES or has_more_than(SLICE_MESSAGES, body):
        raise _large(batch)
    return batch.careful(body, 0)


def _large(batch: _Batch) -> NotPreparedError:
    queue = batch.request.topic, batch.request.queue_id
    return NotPreparedError(queue, partial(_make, batch))


async def _make(batch: _Batch) -> None:
    """Make the records of a large batch, for the offsets that come next.

    Raises:
        Refusal: It has waited for too long behind others.
    """
    context = batch.context
    slices, fair_queue = context.slices(), context.node.fair_queue
    # What opens a queue or makes a topic may take longer, and is waited for.
    behind_others = isinstance(context.waited_for, tuple) and context.opened is None
    in_line = behind_others or slices.flow.large.locked()
    await slices.begin_large(_MADE_BYTES * len(context.body))
    try:
        waited_s = time.monotonic() - context.since_s
        if in_line and waited_s > fair_queue.wait_s:
            raise Refusal(ResponseCode.SYSTEM_BUSY, BUSY + fair_queue.waited(waited_s))
        partition = batch.topic.partitions[batch.queue_id]
        batch = msgspec.structs.replace(
            batch, offset=partition.next_offset, store_ms=now_ms()
        )
        records: list[RecordParts] = []
        is_plain = True
        for part in cut(context.body):
            await slices.pause(_SLICE_S)
            batch.check_keys(part, len(records))
            made = batch.plain(part, len(records)) if is_plain else None
            if made is None:
                if is_plain:
                    batch.check_care()
                is_plain = False
                made = batch.careful(part, len(records))
            records += made
    finally:
        slices.end_large()
    context.made = Made(
        partition, batch.queue_id, batch.offset, batch.store_ms, records
    )


def no_batch(what: str) -> Refusal:
    """Say that something cannot be asked for messages of a batch."""
    return Refusal(
        ResponseCode.MESSAGE_ILLEGAL,
        f"a {what} is not supported for messages of a batch",
    )
