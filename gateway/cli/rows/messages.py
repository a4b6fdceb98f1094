"""Messages: stored, sent, dead, waiting, explained."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ropeway.gateway.cli.rows import Row


class MessageRow(Row, frozen=True):
    """A stored message; a body that is no text is `body_base64`."""

    topic: str
    broker: str
    queue_id: int
    offset: int
    tag: str
    keys: str
    sharding_key: str
    flag: int
    msg_id: str
    offset_msg_id: str
    born_ms: int
    store_ms: int
    store_time: str
    reconsume_times: int
    properties: dict[str, str]
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET


class SentMessage(Row, frozen=True):
    """Where a message was stored; the handle is that of one that waits for a time."""

    topic: str
    broker: str
    queue_id: int
    offset: int
    msg_id: str
    offset_msg_id: str
    status: str
    recall_handle: str | None


class HandledMessage(Row, frozen=True):
    """What a consumer made of a message that it was given."""

    group: str
    client_id: str
    result: str | None
    remark: str | None
    took_ms: int


class DeadLetterRow(Row, frozen=True):
    """A message that a group could not handle."""

    topic: str
    msg_id: str
    offset_msg_id: str
    broker: str
    offset: int
    attempts: int
    tag: str
    keys: str
    dead_since: str
    replayed: bool
    new_msg_id: str | UnsetType = UNSET


class TimedMessage(Row, frozen=True):
    """A message that waits for its delivery time, or at a delay level."""

    deliver_at: str
    topic: str
    delay_level: int | None
    msg_id: str
    recall_handle: str | None


class OpenTransaction(Row, frozen=True):
    """A message that its producer has neither committed nor rolled back."""

    msg_id: str
    topic: str
    producer_group: str
    born: str
    asked: int


class TraceStep(Row, frozen=True):
    """Something that a client wrote down that it did with a message."""

    time: str
    step: str
    group: str
    result: str | None
    took_ms: int | None
    retried: int | None


class FindingRow(Row, frozen=True):
    """Something that explains why a message was not delivered."""

    code: str
    text: str
    advice: str


class Explained(Row, frozen=True):
    """Why a message was not delivered; the first finding is the reason."""

    findings: list[FindingRow]
    message: MessageRow | None
