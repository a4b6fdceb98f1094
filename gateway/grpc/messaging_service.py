"""The service itself: each call is answered here, whatever brought it.

Two servers bring calls: `served`, which is ours, and `grpcio`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple, cast

import structlog

from ropeway.common.clock import now_ms
from ropeway.gateway.budget import Budget
from ropeway.gateway.grpc import (  # noqa: F401 - registers every method
    clients,
    lite,
    protocol,
    pull_message,
    receipts,
    receive_message,
    routes,
    send_message,
    transactions,
)
from ropeway.gateway.grpc.calls import METHODS, Call
from ropeway.gateway.grpc.framing import CallError
from ropeway.gateway.grpc.identity import while_known
from ropeway.gateway.grpc.protocol import (
    Code,
    ReconnectEndpointsCommand,
    TelemetryCommand,
)
from ropeway.gateway.grpc.renewals import Renewals
from ropeway.gateway.grpc.sessions import Sessions
from ropeway.gateway.grpc.statuses import RefusedError, status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

    from ropeway.gateway.grpc.caller import Origin
    from ropeway.gateway.grpc.request_reader import Received
    from ropeway.gateway.node.node import Node

log = structlog.get_logger(__name__)

ROOM_BYTES = 64 * 1024
"""What a request may have beside message bodies."""
METADATA_BYTES = 16 * 1024
KEEPALIVE_S = 60.0
GRACE_S = 1.0
"""What calls have to end in when the node does."""
_BAD_REQUESTS = range(Code.BAD_REQUEST, Code.INTERNAL_ERROR)


class Method(NamedTuple):
    """One method of the service."""

    name: str
    path: str
    request: type[Message]
    answer: type[Message]
    streams_in: bool
    """Whether requests come one after the other; Telemetry alone."""
    streams_out: bool


class Asked(NamedTuple):
    """What is known of a call beside its request."""

    origin: Origin
    metadata: Iterable[tuple[str, str | bytes]]
    remaining_s: float | None
    """Time until the client gives up; None: it has no deadline."""


class TelemetryRefusedError(Exception):
    """A stream ends for what its client has sent.

    Args:
        is_bad: Whether that is the client's fault.
        message: What it is told.
    """

    def __init__(self, message: str, *, is_bad: bool) -> None:
        super().__init__(message)
        self.is_bad = is_bad
        self.message = message


class Messaging:
    """The service of one node, and what outlives its calls.

    Args:
        node: The node.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.sessions = Sessions()
        self.renewals = Renewals(now_ms)
        self.budget = Budget(node.config.limits.slow_readers_bytes)
        self.limit_bytes = node.config.limits.frame_bytes + ROOM_BYTES
        """Longer requests are refused."""

    def end_sessions(self) -> None:
        """Have every client connect again, elsewhere if there is another node."""
        for session in self.sessions:
            command = ReconnectEndpointsCommand(nonce=session.client_id)
            session.tell(TelemetryCommand(reconnect_endpoints_command=command))
            session.close()

    async def answer(self, method: Method, request: Received, asked: Asked) -> Message:
        """Answer a call that has one answer.

        One is refused of whose client more waits than its share of what may wait, as
        RocketMQ's proxy does where its queues are full.

        Source: GrpcMessagingApplication.flowLimitStatus, RocketMQ 5.3.4.
        """
        try:
            call = Call(self, *asked)
            await _identify(call, method.name)
            slices, turns = call.slices(), self.node.turns
            if why := turns.why_full(slices.flow):
                return method.answer(status=status(Code.TOO_MANY_REQUESTS, why))
            # As `kept` would, for half of what that takes.
            turns.keep(slices.flow, request.size_bytes)
            try:
                message = await request.message(slices)
                return cast("Message", await METHODS[method.name](message, call))
            finally:
                turns.keep(slices.flow, -request.size_bytes)
        except CallError:
            raise
        except Exception as error:  # noqa: BLE001 - turned into an answer
            return _failed(method.answer, error)
        finally:
            request.done()

    async def stream(
        self, method: Method, request: Received, asked: Asked
    ) -> AsyncGenerator[Message, None]:
        """Answer a call that has a stream of answers."""
        try:
            call = Call(self, *asked)
            await _identify(call, method.name)
            slices = call.slices()
            with slices.kept(request.size_bytes):
                message = await request.message(slices)
            async with contextlib.aclosing(
                while_known(call, method.name, METHODS[method.name](message, call))
            ) as responses:
                async for response in responses:
                    yield response
        except CallError:
            raise
        except Exception as error:  # noqa: BLE001 - turned into an answer
            yield _failed(method.answer, error)
        finally:
            request.done()

    async def telemetry(
        self, commands: AsyncIterator[Received], asked: Asked
    ) -> AsyncGenerator[TelemetryCommand, None]:
        """Serve a client's stream, until one of both sides ends it.

        Raises:
            TelemetryRefusedError: It ends with an error.
        """
        try:
            call = Call(self, *asked)
            try:
                await _identify(call, "Telemetry")
            except RefusedError:
                # A client that is still to write would fail there, and not hear why.
                await anext(commands, None)
                raise
            async with contextlib.aclosing(
                while_known(
                    call, "Telemetry", clients.telemetry(_decoded(commands, call), call)
                )
            ) as said:
                async for command in said:
                    yield command
        except Exception as error:
            refused = _refusal(error)
            raise TelemetryRefusedError(
                f"{Code.Name(refused.code)}: {refused.message:.500}",
                is_bad=refused.code in _BAD_REQUESTS,
            ) from error


def methods() -> list[Method]:
    """Every method of the service."""
    return [_method(one) for one in protocol.SERVICE.methods]


def _method(described: MethodDescriptor) -> Method:
    name = described.name
    return Method(
        name=name,
        path=f"/{protocol.SERVICE.full_name}/{name}",
        request=protocol.message_class(described.input_type),
        answer=protocol.message_class(described.output_type),
        streams_in=described.client_streaming,
        streams_out=described.server_streaming,
    )


async def _decoded(
    commands: AsyncIterator[Received], call: Call
) -> AsyncIterator[TelemetryCommand]:
    async for command in commands:
        slices = call.slices()
        try:
            with slices.kept(command.size_bytes):
                message = await command.message(slices)
        finally:
            command.done()
        yield message


async def _identify(call: Call, method: str) -> None:
    await call.identify(method)
    share = call.origin.share
    if share is not None:
        share.charge(1, 0)


def _failed(answer: type[Message], error: Exception) -> Message:
    refused = _refusal(error)
    return answer(status=status(refused.code, refused.message))


def _refusal(error: Exception) -> RefusedError:
    """What a client is told of an error."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, CallError):
        return RefusedError(Code.BAD_REQUEST, error.message)
    log.error("call failed", exc_info=error)
    return RefusedError(
        Code.INTERNAL_SERVER_ERROR, "the broker failed; its log says why"
    )
