"""Headers of looking messages up."""

from __future__ import annotations

import msgspec

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class QueryReply(Header, frozen=True):
    """How far the key index has come; the messages are the frame's body.

    Source: QueryMessageResponseHeader.java, RocketMQ 5.3.4.
    """

    index_last_update_timestamp: I64
    index_last_update_phyoffset: I64


@request(RequestCode.ROPEWAY_NOTE_RESEND)
class NoteResend(Header, frozen=True):
    """Say that a stored message is about to be sent again; for the audit log alone."""

    to_topic: str
    msg_id: str
    topic: str
    """Where the message is."""


@request(RequestCode.QUERY_MESSAGE, reply=QueryReply)
class QueryMessage(Header, frozen=True):
    """Find messages by key, or by unique key, within a time range.

    Source: QueryMessageRequestHeader.java, RocketMQ 5.5.0.
    """

    topic: str
    key: str
    max_num: I32
    begin_timestamp: I64
    end_timestamp: I64
    index_type: str | None = None
    last_key: str | None = None
    unique_key_query: bool = msgspec.field(name="_UNIQUE_KEY_QUERY", default=False)


@request(RequestCode.VIEW_MESSAGE_BY_ID)
class ViewMessage(Header, frozen=True):
    """Read the message that an offsetMsgId names.

    Source: ViewMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    offset: I64
    """The message id."""
    topic: str | None = None
