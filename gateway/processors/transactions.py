"""Transactions: half messages are committed, rolled back, or begun anew.

A producer learns nothing from the answer to the end of a transaction, since clients
send that one-way; people and other tools do.

Source: EndTransactionProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.common.eager import eager, own_task
from ropeway.gateway.node import names
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions import not_found
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.processors.needs import (
    GET,
    PUB,
    UPDATE,
    on_topic,
    on_topic_if_given,
    topic_need,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies, message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.transactions import (
    COMMIT,
    MAX_PAGE,
    NOT_DECIDED,
    ROLLBACK,
    EndTransaction,
    HalvesPage,
    ListHalves,
    OpenHalf,
    ResumeCheckHalfMessage,
)
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.storage.api import LogError

_ENDS = {COMMIT: End.COMMITTED, ROLLBACK: End.ROLLED_BACK}
_DONE = Answer()
_MAX_LOOKS = 10_000
"""Half messages that are looked at for one page, as of timers."""


@handles(EndTransaction, on_topic_if_given(PUB))
@eager
async def end_transaction(request: EndTransaction, context: Context) -> Answer | Later:
    """Commit a half message, or roll it back; or say that it is not known yet."""
    if request.commit_or_rollback == NOT_DECIDED:
        return Answer(remark="its producer is asked again later")
    if request.commit_or_rollback not in _ENDS:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"commitOrRollback is {request.commit_or_rollback}; "
            f"allowed: {NOT_DECIDED}, {COMMIT}, {ROLLBACK}",
        )
    offset = _offset(request)
    if offset != request.tran_state_table_offset:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            "The transaction state table offset wrong: "
            f"{request.tran_state_table_offset}, and the commit log offset says "
            f"{offset}",
        )
    half = context.node.transactions.find_now(offset)
    if half is None:
        half = await own_task(context.node.transactions.find(offset))
    # What the client says of the topic, if anything, counts for nothing.
    if not await context.may(topic_need(half.topic, (PUB,))):
        raise not_found(request.tran_state_table_offset)
    return _end(request, context, half)


def _offset(request: EndTransaction) -> int:
    try:
        return message_id.offset_of(request.commit_log_offset)
    except MessageError as error:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"Find prepared transaction message failed: {error}",
        ) from error


def _end(request: EndTransaction, context: Context, half: Half) -> Answer | Later:
    _check(request, context, half)
    how = _ENDS[request.commit_or_rollback]

    def done(error: LogError | None) -> None:
        if error is None:
            context.answer(_DONE)
        else:
            context.refuse(code_of(error) or ResponseCode.SYSTEM_ERROR, str(error))

    begun = context.node.transactions.end(half, how, request.commit_log_offset, done)
    if not begun:
        return Answer(
            remark=f"transaction {half.unique_key} was {how.value} before; "
            "nothing was done"
        )
    return LATER


def _check(request: EndTransaction, context: Context, half: Half) -> None:
    if half.group != request.producer_group:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"The producer group wrong: {request.producer_group:.200}, and the "
            f"message was sent by {half.group:.200}",
        )
    own_ms = half.immunity_ms
    if own_ms is None or request.from_transaction_check:
        return
    allowed_ms = max(own_ms, context.node.config.transactions.timeout_ms)
    waited_ms = now_ms() - half.message.born_ms
    if waited_ms > allowed_ms:
        raise Refusal(
            ResponseCode.ILLEGAL_OPERATION,
            f"transaction {half.unique_key} is ended {waited_ms} ms after its birth; "
            f"allowed: {allowed_ms}; its producer is asked instead",
        )


@handles(ResumeCheckHalfMessage, on_topic(UPDATE))
async def resume_check(request: ResumeCheckHalfMessage, context: Context) -> Answer:
    """Ask producers again about a message that was given up."""
    identity = message_id.parse_offset_msg_id(request.msg_id or "").message_id
    record = await lookup.stored(context.node, identity, names.GIVEN_UP_TOPIC)
    half = half_messages.read(record)
    if not await context.may(topic_need(half.topic, (UPDATE,))):
        raise lookup.missing(identity)
    await context.node.transactions.resume(half)
    return Answer()


@handles(ListHalves, on_topic(GET))
async def list_halves(request: ListHalves, context: Context) -> Answer:
    """Tell which transactions are open."""
    if not 1 <= request.max_nums <= MAX_PAGE:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"maxNums is {request.max_nums}; allowed: 1 to {MAX_PAGE}",
        )

    def is_wanted(half: Half) -> bool:
        return request.topic in (None, half.topic) and (
            request.unique_key in (None, half.unique_key)
        )

    found, more = await context.node.transactions.page(
        request.after, request.max_nums, _MAX_LOOKS, is_wanted
    )
    rows = [
        OpenHalf(
            topic=half.topic,
            producer_group=half.group,
            checks=half.checks,
            store_ms=half.store_ms,
            msg_id=half.unique_key,
            born_ms=half.message.born_ms,
        )
        for half in found
    ]
    return Answer(body=bodies.encode(HalvesPage(transactions=rows, next=more)))
