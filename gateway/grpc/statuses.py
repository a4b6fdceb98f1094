"""The codes of answers, and the one table to them from those of the processors.

Source: definition.proto of apache.rocketmq.v2; ResponseBuilder.java, RocketMQ 5.3.4,
which knows fewer and says INTERNAL_SERVER_ERROR for all others.
"""

from __future__ import annotations

from ropeway.gateway.grpc.protocol import Code, Status
from ropeway.gateway.wire.codes import ResponseCode

_MAX_MESSAGE = 1000

CODES: dict[int, Code] = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.FLOW_CONTROL: Code.TOO_MANY_REQUESTS,
    ResponseCode.POLLING_FULL: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
    ResponseCode.SERVICE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
    ResponseCode.MESSAGE_ILLEGAL: Code.BAD_REQUEST,
    ResponseCode.INVALID_PARAMETER: Code.BAD_REQUEST,
    ResponseCode.ILLEGAL_OPERATION: Code.BAD_REQUEST,
    ResponseCode.NO_PERMISSION: Code.FORBIDDEN,
    ResponseCode.TOPIC_NOT_EXIST: Code.TOPIC_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: Code.ILLEGAL_FILTER_EXPRESSION,
    ResponseCode.PULL_NOT_FOUND: Code.MESSAGE_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY: Code.MESSAGE_NOT_FOUND,
    ResponseCode.POLLING_TIMEOUT: Code.MESSAGE_NOT_FOUND,
    ResponseCode.PULL_OFFSET_MOVED: Code.ILLEGAL_OFFSET,
    ResponseCode.QUERY_NOT_FOUND: Code.OFFSET_NOT_FOUND,
    ResponseCode.NO_MESSAGE: Code.INVALID_RECEIPT_HANDLE,
    ResponseCode.LMQ_QUOTA_EXCEEDED: Code.LITE_TOPIC_QUOTA_EXCEEDED,
    ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED: (
        Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED
    ),
}
"""By the processors' codes; for all others INTERNAL_SERVER_ERROR."""


class RefusedError(Exception):
    """A call cannot be done; the code and the sentence go to the client.

    Args:
        code: What the client's logic reads.
        message: What people read: what came, and what is allowed.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def code_of(code: int) -> Code:
    """The code for one of the processors' answers."""
    return CODES.get(code, Code.INTERNAL_SERVER_ERROR)


def status(code: Code, message: str = "") -> Status:
    """A status; the code's name where nothing more is to be said."""
    return Status(code=code, message=f"{message:.{_MAX_MESSAGE}}" or Code.Name(code))


OK = status(Code.OK)


def together(codes: set[Code]) -> Status:
    """The status of a call with several results."""
    if len(codes) == 1:
        return status(next(iter(codes)))
    return status(Code.MULTIPLE_RESULTS)
