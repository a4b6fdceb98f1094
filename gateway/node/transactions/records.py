"""What is stored of a transaction: half messages, their copies, and what they become.

A half message is what was sent, in the half topic, with its real topic and queue, and
its transaction's id, among the properties. Copies of it have the offset of the first
one, and count how often its producer was asked.

Source: TransactionalMessageBridge.java and EndTransactionProcessor.java, 5.3.4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import record_builder
from ropeway.gateway.wire import message, properties, record_rewrite
from ropeway.gateway.wire.errors import MessageError
from ropeway.storage.api import Record

if TYPE_CHECKING:
    from ropeway.gateway.node.record_builder import NewMessage
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.storage.api import RecordParts

OURS = (
    properties.REAL_TOPIC,
    properties.REAL_QUEUE_ID,
    properties.TRANSACTION_ID,
    properties.TRANSACTION_CHECK_TIMES,
    properties.TRANSACTION_PREPARED_QUEUE_OFFSET,
)
"""Properties that a client may have kept from a message that it received."""
_OF_THE_WAY = (
    properties.REAL_TOPIC,
    properties.REAL_QUEUE_ID,
    properties.TRANSACTION_PREPARED_QUEUE_OFFSET,
)
COPY_ROOM_BYTES = 100
"""What copies have more: where the first one is, and how often a producer was asked."""
_VALUE_END = properties.VALUE_END.encode()
_ID_START = properties.TRANSACTION_ID + properties.NAME_END


def half_text(
    text: str,
    pairs: dict[str, str],
    topic: str,
    queue_id: int,
    group: str,
    unique_key: str,
) -> str:
    """The properties of a half message, in wire form.

    Args:
        text: Those that were sent, in wire form.
        pairs: The same, taken apart; changed with it.
        topic: Where it is for.
        queue_id: Which queue of it.
        group: Who sends it, where the properties do not say.
        unique_key: Its unique key, among the properties.
    """
    if not pairs.keys().isdisjoint(OURS):
        for name in OURS:
            pairs.pop(name, None)
        text = properties.dump(pairs)
    if properties.PRODUCER_GROUP not in pairs:
        # It came outside the properties, and must not bring others in.
        sender = group.partition(properties.VALUE_END)[0]
        pairs[properties.PRODUCER_GROUP] = sender
        text += properties.dump({properties.PRODUCER_GROUP: sender})
    pairs[properties.REAL_TOPIC] = topic
    pairs[properties.REAL_QUEUE_ID] = str(queue_id)
    return f"{text}{_ID_START}{unique_key}\x02{_real(topic, queue_id)}"


def half_record(
    topic: ServedTopic, offset: int, store_ms: int, new: NewMessage
) -> Record:
    """Make a half message; see `make_record`. Nobody finds it by its keys.

    Raises:
        MessageError: The properties leave no room for those of its copies.
    """
    size = len(new.properties.encode())
    most = message.MAX_PROPERTIES_BYTES - COPY_ROOM_BYTES
    if size > most:
        raise MessageError(
            f"properties of {size} bytes with the broker's own; allowed: {most} of a "
            "half message"
        )
    made = record_builder.make_record(topic, 0, offset, store_ms, new)
    return Record(made[0], 0, ())


def copy(half: Half, topic: ServedTopic, store_ms: int, *, checks: int) -> Record:
    """The half message once more, at the end of its topic.

    Args:
        half: The copy before.
        topic: The half topic.
        store_ms: Now.
        checks: How often its producer was asked, with the time that comes now.
    """
    pairs = half.pairs
    pairs[properties.TRANSACTION_PREPARED_QUEUE_OFFSET] = str(half.origin)
    if checks:
        pairs[properties.TRANSACTION_CHECK_TIMES] = str(checks)
    return _unseen(half, topic, store_ms, properties.dump(pairs).encode())


def begun_again(half: Half, topic: ServedTopic, store_ms: int) -> Record:
    """A half message that was given up, as a new one."""
    pairs = half.pairs
    pairs.pop(properties.TRANSACTION_PREPARED_QUEUE_OFFSET, None)
    pairs[properties.TRANSACTION_CHECK_TIMES] = "0"
    return _unseen(half, topic, store_ms, properties.dump(pairs).encode())


def given_up(half: Half, topic: ServedTopic, store_ms: int) -> RecordParts:
    """The half message in the topic of those whose producers never knew."""
    return _moved(half, topic, store_ms, None)


def committed(
    half: Half,
    topic: ServedTopic,
    queue_id: int,
    store_ms: int,
    named_id: int,
    text: str | None = None,
) -> RecordParts:
    """The message that consumers get.

    Args:
        half: What it was.
        topic: Its topic, or the one that it waits in.
        queue_id: Which queue of it.
        store_ms: Now.
        named_id: The id of the half message as its producer named it.
        text: Its properties; None for `committed_pairs`.
    """
    offset = topic.partitions[queue_id].next_offset
    record = record_rewrite.committed(
        half.data,
        _committed_text(half) if text is None else text.encode(),
        topic.magic,
        topic.name_field,
        queue_id,
        offset,
        topic.id_bases[queue_id] | offset,
        store_ms,
        named_id,
    )
    if record is None:
        raise _too_long(half)
    return record


def committed_pairs(half: Half) -> dict[str, str]:
    """The properties of a half message without those of its way."""
    pairs = half.pairs
    for name in _OF_THE_WAY:
        pairs.pop(name, None)
    return pairs


def _committed_text(half: Half) -> bytes:
    """The same in wire form, in fewer steps where it was not stored again."""
    text = half.text
    if half.origin == half.offset:
        before, real, after = text.partition(_real_data(half.topic, half.queue_id))
        if real:
            return before + _VALUE_END + after
    return properties.dump(committed_pairs(half)).encode()


@lru_cache(maxsize=4096)
def _real(topic: str, queue_id: int) -> str:
    """The properties that say where a message is for, in wire form."""
    return properties.dump(
        {properties.REAL_TOPIC: topic, properties.REAL_QUEUE_ID: str(queue_id)}
    )


@lru_cache(maxsize=4096)
def _real_data(topic: str, queue_id: int) -> bytes:
    """The same between other properties, as UTF-8."""
    return _VALUE_END + _real(topic, queue_id).encode()


def _unseen(half: Half, topic: ServedTopic, store_ms: int, text: bytes) -> Record:
    """A half message once more; nobody finds it by its tag, nor by its keys."""
    data, _, _ = _moved(half, topic, store_ms, text)
    return Record(data, 0, ())


def _moved(
    half: Half, topic: ServedTopic, store_ms: int, text: bytes | None
) -> RecordParts:
    """A half message at the end of a topic, with other properties if they are given."""
    records = record_rewrite.moved_all(
        [(half.data, text)],
        topic.magic,
        topic.name_field,
        0,
        topic.partitions[0].next_offset,
        topic.id_bases[0],
        store_ms,
        False,
    )
    if records is None:
        raise _too_long(half)
    return records[0]


def _too_long(half: Half) -> MessageError:
    return MessageError(
        f"the properties of transaction {half.unique_key} are too long; "
        f"allowed: {message.MAX_PROPERTIES_BYTES} bytes with the broker's own"
    )


def for_producer(half: Half) -> bytes:
    """A half message as its producer is shown it: in its real topic and queue."""
    # As a real broker has it, which does not wait until it has stored the copy.
    pairs = {**half.pairs, properties.WAIT: "false"}
    shown = msgspec.structs.replace(
        half.message,
        topic=half.topic,
        queue_id=half.queue_id,
        properties=properties.dump(pairs),
    )
    return message.encode(shown)
