"""The one table from errors to response codes.

What a client does next decides: Java's and Go's producers try another queue after
SYSTEM_ERROR, SYSTEM_BUSY and SERVICE_NOT_AVAILABLE, and give up after others.
"""

from __future__ import annotations

from ropeway.gateway.lite.service import SubscriptionQuotaError
from ropeway.gateway.node.attributes import BadAttributeError
from ropeway.gateway.node.batches import BatchError, ForeignBatchError
from ropeway.gateway.node.client_owners import TakenError
from ropeway.gateway.node.creations import TooLongError, TooManyError
from ropeway.gateway.node.forwarder import ForwardingError
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.node.leadership import HandOverError, NoLeaderError
from ropeway.gateway.node.message_keys import MissingKeyError
from ropeway.gateway.node.message_types import WrongTypeError
from ropeway.gateway.node.moves import MoveError
from ropeway.gateway.node.source_routes import SourceError
from ropeway.gateway.node.sql import CompilerBusyError
from ropeway.gateway.node.subscriptions import SubscriptionError
from ropeway.gateway.node.timer.pending_timers import BadTimeError
from ropeway.gateway.node.topic_changes import TopicError
from ropeway.gateway.node.transactions import TransactionError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.errors import HeaderError, MessageError, ReceiptError
from ropeway.routing.api import RouteError
from ropeway.storage.api import (
    BeginsElsewhereError,
    LogBusyError,
    LogDamagedError,
    LogLimitError,
    LogUnavailableError,
    LogUnfitError,
    NoSuchPartitionError,
    NotReadyError,
    OutcomeUnknownError,
)

CODES: dict[type[Exception], ResponseCode] = {
    HeaderError: ResponseCode.SYSTEM_ERROR,
    MessageError: ResponseCode.MESSAGE_ILLEGAL,
    ReceiptError: ResponseCode.INVALID_PARAMETER,
    SubscriptionError: ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    WrongTypeError: ResponseCode.MESSAGE_ILLEGAL,
    MissingKeyError: ResponseCode.MESSAGE_ILLEGAL,
    BadAttributeError: ResponseCode.SYSTEM_ERROR,
    TopicError: ResponseCode.INVALID_PARAMETER,
    BadTimeError: ResponseCode.MESSAGE_ILLEGAL,
    IndexLostError: ResponseCode.SERVICE_NOT_AVAILABLE,
    TransactionError: ResponseCode.SYSTEM_ERROR,
    BatchError: ResponseCode.INVALID_PARAMETER,
    SubscriptionQuotaError: ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
    ForeignBatchError: ResponseCode.NO_PERMISSION,
    TakenError: ResponseCode.NO_PERMISSION,
    TooManyError: ResponseCode.SYSTEM_BUSY,
    TooLongError: ResponseCode.INVALID_PARAMETER,
    NoLeaderError: ResponseCode.SERVICE_NOT_AVAILABLE,
    MoveError: ResponseCode.ILLEGAL_OPERATION,
    HandOverError: ResponseCode.ILLEGAL_OPERATION,
    # The other node may have done it, like a log that does not answer.
    ForwardingError: ResponseCode.SYSTEM_ERROR,
    # Never that there is no topic: clients would have it made.
    SourceError: ResponseCode.SERVICE_NOT_AVAILABLE,
    RouteError: ResponseCode.SERVICE_NOT_AVAILABLE,
    LogBusyError: ResponseCode.SYSTEM_BUSY,
    CompilerBusyError: ResponseCode.SYSTEM_BUSY,
    NotReadyError: ResponseCode.SERVICE_NOT_AVAILABLE,
    LogUnavailableError: ResponseCode.SERVICE_NOT_AVAILABLE,
    # Not a success, and not a reason to think that nothing was stored.
    OutcomeUnknownError: ResponseCode.SYSTEM_ERROR,
    LogDamagedError: ResponseCode.SYSTEM_ERROR,
    LogLimitError: ResponseCode.MESSAGE_ILLEGAL,
    LogUnfitError: ResponseCode.INVALID_PARAMETER,
    BeginsElsewhereError: ResponseCode.INVALID_PARAMETER,
    NoSuchPartitionError: ResponseCode.TOPIC_NOT_EXIST,
}


def code_of(error: Exception) -> ResponseCode | None:
    """The code for an error; None for one that nobody foresaw."""
    for kind in type(error).__mro__:
        if code := CODES.get(kind):
            return code
    return None
