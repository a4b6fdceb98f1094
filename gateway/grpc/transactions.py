"""EndTransaction: half messages are committed or rolled back.

The id of a transaction is the offsetMsgId of its half message. So no node has to
remember it, and any that leads the broker can end it.

Source: EndTransactionActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    Code,
    EndTransactionResponse,
    TransactionResolution,
    TransactionSource,
)
from ropeway.gateway.grpc.statuses import OK, RefusedError
from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.commands.transactions import (
    COMMIT,
    NOT_DECIDED,
    ROLLBACK,
    EndTransaction,
)
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import EndTransactionRequest

_ENDS = {
    TransactionResolution.COMMIT: COMMIT,
    TransactionResolution.ROLLBACK: ROLLBACK,
}


@rpc("EndTransaction")
async def end_transaction(
    request: EndTransactionRequest, call: Call
) -> EndTransactionResponse:
    """Commit a half message, roll it back, or say that it is not known yet."""
    topic = validation.topic(request.topic)
    try:
        identity = message_id.parse_offset_msg_id(request.transaction_id).message_id
        offset = message_id.unpack(identity).offset
    except MessageError as error:
        raise RefusedError(Code.INVALID_TRANSACTION_ID, str(error)) from error
    header = EndTransaction(
        producer_group=topic,
        tran_state_table_offset=offset,
        commit_log_offset=identity,
        commit_or_rollback=_ENDS.get(request.resolution, NOT_DECIDED),
        msg_id=request.message_id,
        from_transaction_check=request.source == TransactionSource.SOURCE_SERVER_CHECK,
        transaction_id=request.message_id,
        topic=topic,
    )
    await call.do(header)
    return EndTransactionResponse(status=OK)
