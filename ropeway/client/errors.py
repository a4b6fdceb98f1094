"""What can go wrong between a client and its servers, by what a caller can do."""

from __future__ import annotations

from ropeway.gateway.wire.codes import ResponseCode

RETRYABLE_CODES = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)
"""Answers after which another broker or queue may take the message.

Source: DefaultMQProducer.retryResponseCodes, RocketMQ 5.3.4.
"""


class RemotingError(Exception):
    """A request did not succeed. All errors of this client are of this kind."""


class ConnectionFailedError(RemotingError):
    """No connection to the address, or it was lost before the answer came.

    A request may or may not have been carried out.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        """Where it was to go, as `host:port`."""
        self.reason = reason
        """What happened, in words."""


class RequestTimeoutError(ConnectionFailedError):
    """The answer did not come in time; the request may have been carried out."""


class ClientClosedError(RemotingError):
    """The client was closed, or never started."""


class TopicNotFoundError(RemotingError):
    """No name server knows a route for the topic."""


class AdminError(RemotingError):
    """What was asked for cannot be done as things are; the text says what is needed."""


class BrokerNotFoundError(AdminError):
    """No name server knows the broker, or it has no master now."""


class BadResponseError(RemotingError):
    """A server's answer does not follow the protocol."""


class ResponseError(RemotingError):
    """A server answered that it did not do what was asked."""

    def __init__(self, code: int, remark: str | None, address: str) -> None:
        self.code = code
        """The response code, as the server sent it."""
        self.remark = remark or ""
        """The server's own words."""
        self.address = address
        """Who answered, as `host:port`."""
        super().__init__(f"{address} answered {self.name}: {self.remark}")

    @property
    def name(self) -> str:
        """The code's name, or its number where it has none."""
        try:
            return ResponseCode(self.code).name
        except ValueError:
            return f"code {self.code}"


def may_succeed_elsewhere(error: RemotingError) -> bool:
    """Whether the same message may be sent again to another queue or broker."""
    if isinstance(error, ResponseError):
        return error.code in RETRYABLE_CODES
    return isinstance(error, ConnectionFailedError)
