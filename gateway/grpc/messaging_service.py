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
from ropeway.gateway.grpc.calls import Call
from ropeway.gateway.grpc.credentials import credentials_of
from ropeway.gateway.grpc.framing import CallError
from ropeway.gateway.grpc.identity import while_known
from ropeway.gateway.grpc.methods import METHODS
from ropeway.gateway.grpc.protocol import (
    Code,
    ReconnectEndpointsCommand,
    TelemetryCommand,
)
from ropeway.gateway.grpc.renewals import Renewals
from ropeway.gateway.grpc.sessions import Sessions
from ropeway.gateway.grpc.statuses import RefusedError, status
from ropeway.gateway.wire.codes import Language

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

    from ropeway.gateway.grpc.calls import Asked
    from ropeway.gateway.grpc.messages import Request
    from ropeway.gateway.node.node import Node

log = structlog.get_logger(__name__)

ROOM_BYTES = 64 * 1024
"""What a request may have beside message bodies."""
METADATA_BYTES = 16 * 1024
KEEPALIVE_S = 60.0
GRACE_S = 1.0
"""What calls have to end in when the node does."""
_CLIENT_ID = "x-mq-client-id"
_LANGUAGE = "x-mq-language"
_MAX_CLIENT_ID = 255
_LANGUAGES = {
    **{language.name: language.name for language in Language},
    "GOLANG": Language.GO.name,
    "DOT_NET": Language.DOTNET.name,
    # What the Python client calls itself.
    "GRPC_V2": Language.PYTHON.name,
}
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
        self.sessions = Sessions(node.config.creations.session_bytes)
        self.renewals = Renewals(now_ms)
        self.budget = Budget(node.config.limits.slow_readers_bytes)
        self.requests = node.config.requests
        """How large requests may be, decoded."""
        self.limit_bytes = node.config.limits.frame_bytes + ROOM_BYTES
        """Longer requests are refused."""

    def end_sessions(self) -> None:
        """Have every client connect again, elsewhere if there is another node."""
        for session in self.sessions:
            command = ReconnectEndpointsCommand(nonce=session.client_id)
            session.tell(TelemetryCommand(reconnect_endpoints_command=command))
            session.close()

    async def answer(self, method: Method, request: Request, asked: Asked) -> Message:
        """Answer a call that has one answer.

        One is refused of whose client more waits than its share of what may wait, as
        RocketMQ's proxy does where its queues are full.

        Source: GrpcMessagingApplication.flowLimitStatus, RocketMQ 5.3.4.
        """
        try:
            call = await self._identified(method.name, asked)
            flow, fair_queue = call.flow, self.node.fair_queue
            if fair_queue.is_full(flow):
                why = fair_queue.why_full(flow)
                return method.answer(status=status(Code.TOO_MANY_REQUESTS, why))
            # As `kept` would, for half of what that takes.
            size = request.size_bytes
            fair_queue.keep(flow, size)
            try:
                message = await request.message(call.slices)
                return cast("Message", await METHODS[method.name](message, call))
            finally:
                fair_queue.keep(flow, -size)
        except CallError:
            raise
        except Exception as error:  # noqa: BLE001 - turned into an answer
            return _failed(method.answer, error)
        finally:
            if request.large is not None:
                request.done()

    async def _identified(self, method: str, asked: Asked) -> Call:
        """Find out who calls, and count the call.

        Raises:
            RefusedError: It does not say who calls, or nobody knows the client.

        Source: HeaderInterceptor.java and ContextInitPipeline.java, RocketMQ 5.3.4.
        """
        origin, metadata, deadline_s = asked
        client_id = metadata.get(_CLIENT_ID)
        if not isinstance(client_id, str) or not client_id.strip():
            raise RefusedError(
                Code.CLIENT_ID_REQUIRED, f"the metadata have no {_CLIENT_ID}"
            )
        if len(client_id) > _MAX_CLIENT_ID:
            raise RefusedError(
                Code.BAD_REQUEST,
                f"{_CLIENT_ID} of {len(client_id)} characters; "
                f"allowed: {_MAX_CLIENT_ID}",
            )
        node = self.node
        language = _LANGUAGES.get(str(metadata.get(_LANGUAGE)), Language.OTHER.name)
        call = Call(node, origin, language)
        call.messaging, call.method, call.client_id = self, method, client_id
        call.deadline_s, call.flow, call.credentials = deadline_s, origin.flow, None
        if node.guard is not None:
            call.credentials = credentials_of(metadata)
            await call.authenticate()
            whose = call.principal or origin.source.address
            call.flow = node.fair_queue.flow(whose)
        if origin.share is not None:
            origin.share.charge(1, 0)
        return call

    async def stream(
        self, method: Method, request: Request, asked: Asked
    ) -> AsyncGenerator[Message, None]:
        """Answer a call that has a stream of answers."""
        try:
            call = await self._identified(method.name, asked)
            with call.slices().kept(request.size_bytes):
                message = await request.message(call.slices)
            async with contextlib.aclosing(
                while_known(call, METHODS[method.name](message, call))
            ) as responses:
                async for response in responses:
                    yield response
        except CallError:
            raise
        except Exception as error:  # noqa: BLE001 - turned into an answer
            yield _failed(method.answer, error)
        finally:
            if request.large is not None:
                request.done()

    async def telemetry(
        self, commands: AsyncIterator[Request], asked: Asked
    ) -> AsyncGenerator[TelemetryCommand, None]:
        """Serve a client's stream, until one of both sides ends it.

        Raises:
            TelemetryRefusedError: It ends with an error.
        """
        try:
            try:
                call = await self._identified("Telemetry", asked)
            except RefusedError:
                # A client that is still to write would fail there, and not hear why.
                await anext(commands, None)
                raise
            async with contextlib.aclosing(
                while_known(call, clients.telemetry(_decoded(commands, call), call))
            ) as said:
                async for command in said:
                    yield command
        except Exception as error:
            # Without a name here, or it would have itself, and all that came, by
            # this frame: that stays until somebody looks for cycles.
            raise _stream_refusal(_refusal(error)) from error


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
    commands: AsyncIterator[Request], call: Call
) -> AsyncIterator[TelemetryCommand]:
    async for command in commands:
        try:
            with call.slices().kept(command.size_bytes):
                message = await command.message(call.slices)
        finally:
            if command.large is not None:
                command.done()
        yield message


def _failed(answer: type[Message], error: Exception) -> Message:
    refused = _refusal(error)
    return answer(status=status(refused.code, refused.message))


def _stream_refusal(refused: RefusedError) -> TelemetryRefusedError:
    return TelemetryRefusedError(
        f"{Code.Name(refused.code)}: {refused.message:.500}",
        is_bad=refused.code in _BAD_REQUESTS,
    )


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
