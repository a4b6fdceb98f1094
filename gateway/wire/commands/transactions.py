"""Headers of transactions: half messages, their ends, and asking back."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request

NOT_DECIDED = 0
COMMIT = 0x8
ROLLBACK = 0xC


@request(RequestCode.END_TRANSACTION)
class EndTransaction(Header, frozen=True):
    """Commit a half message, roll it back, or say that it is not decided yet.

    Source: EndTransactionRequestHeader.java, RocketMQ 5.3.4.
    """

    producer_group: str
    tran_state_table_offset: I64
    """Queue offset of the half message."""
    commit_log_offset: I64
    """Its message id."""
    commit_or_rollback: I32
    """`COMMIT`, `ROLLBACK` or `NOT_DECIDED`."""
    msg_id: str
    """The message's unique key."""
    from_transaction_check: bool = False
    """Whether the broker asked first."""
    transaction_id: str | None = None
    topic: str | None = None
    bname: str | None = None


@request(RequestCode.CHECK_TRANSACTION_STATE)
class CheckTransactionState(Header, frozen=True):
    """The broker asks a producer how a half message, the body, ended.

    One-way: the producer answers by `EndTransaction`.

    Source: CheckTransactionStateRequestHeader.java, RocketMQ 5.3.4.
    """

    tran_state_table_offset: I64
    commit_log_offset: I64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None
    bname: str | None = None


@request(RequestCode.RESUME_CHECK_HALF_MESSAGE)
class ResumeCheckHalfMessage(Header, frozen=True):
    """Ask producers again about a half message that was given up.

    Source: ResumeCheckHalfMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str | None = None
    msg_id: str | None = None


MAX_PAGE = 1000
"""Transactions of one answer."""


@request(RequestCode.ROPEWAY_LIST_HALVES)
class ListHalves(Header, frozen=True):
    """Ask a broker for open transactions; the body tells a page of them.

    Half messages are nobody's to read, and this tells nothing of what is in them. A
    page may have fewer than were asked for, or none, and there may be more all the
    same: what is looked at for one answer is bounded.
    """

    max_nums: I32
    """1 to `MAX_PAGE`."""
    topic: str | None = None
    """Only messages for it."""
    unique_key: str | None = None
    """Only the message with this id, as its producer knows it."""
    after: I64 = 0
    """Where the page before said to go on."""


class OpenHalf(Body, frozen=True):
    """A message that its producer has neither committed nor rolled back."""

    topic: str
    """Where it is for."""
    producer_group: str
    checks: int
    """How often the producer was asked what became of it."""
    store_ms: int
    """When it was stored, for the first time or again, in milliseconds since 1970."""
    msg_id: str = ""
    """Its unique key."""
    born_ms: int = 0
    """When its producer made it."""


class HalvesPage(Body, frozen=True):
    """Open transactions, about the oldest first."""

    transactions: list[OpenHalf]
    next: int | None = None
    """Where to go on; None where there are no more."""
