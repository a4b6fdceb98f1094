"""The gRPC server: the only file that imports grpc.

It runs on the node's own event loop. A thread for each call would be none the cheaper,
since what a call asks for is done on that loop; and every client has a stream and a
call that wait, which would take a thread each.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc
import grpc.aio
import structlog

from gateway.budget import Budget
from gateway.grpc import (  # noqa: F401 - registers every method
    clients,
    lite,
    protocol,
    pulling,
    receipts,
    receiving,
    routes,
    sending,
    transactions,
)
from gateway.grpc.calls import METHODS, Call
from gateway.grpc.protocol import Code, ReconnectEndpointsCommand, TelemetryCommand
from gateway.grpc.renewals import Renewals
from gateway.grpc.sessions import Sessions
from gateway.grpc.statuses import RefusedError, status
from gateway.node.node import now_ms
from gateway.pipes import Pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

    from gateway.app import App
    from gateway.node.node import Node

log = structlog.get_logger(__name__)

_PEER = "unix-abstract:"
_ROOM_BYTES = 64 * 1024
"""What a request may have beside message bodies."""
_METADATA_BYTES = 16 * 1024
_KEEPALIVE_MS = 60_000
_BAD_REQUESTS = range(Code.BAD_REQUEST, Code.INTERNAL_ERROR)
_GRACE_S = 1.0

Context = grpc.aio.ServicerContext[Any, Any]


class Messaging:
    """The service of one node, and what outlives its calls.

    Args:
        app: The node with its listeners, which must be open.
    """

    def __init__(self, app: App) -> None:
        self._server = app.server
        self.node: Node = app.node
        self.sessions = Sessions()
        self.renewals = Renewals(now_ms)
        self.budget = Budget(self.node.config.limits.slow_readers_bytes)
        self._pipes: Pipes

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Take calls until the end of the block."""
        limits = self.node.config.limits
        limit = limits.frame_bytes + _ROOM_BYTES
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", -1),
                # Of one connection. Clients wait with more, as HTTP/2 wants it.
                ("grpc.max_concurrent_streams", limits.requests_in_flight),
                ("grpc.max_metadata_size", _METADATA_BYTES),
                ("grpc.absolute_max_metadata_size", _METADATA_BYTES),
                ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
                # Clients' own are welcome: Java and Go send them each 30 s and less.
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        server.add_registered_method_handlers(
            protocol.SERVICE.full_name,
            {one.name: self._handler(one) for one in protocol.SERVICE.methods},
        )
        with tempfile.TemporaryDirectory(prefix="ropeway-") as folder:
            # Nobody else may enter the folder, so nobody else may connect.
            path = Path(folder, "grpc")
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._pipes = self._server.pipes = Pipes(path, self.budget, limit)
            renewing = asyncio.get_running_loop().create_task(self.renewals.run())
            try:
                yield
            finally:
                renewing.cancel()
                await self._stop(server)

    async def _stop(self, server: grpc.aio.Server) -> None:
        for session in self.sessions:
            command = ReconnectEndpointsCommand(nonce=session.client_id)
            session.tell(TelemetryCommand(reconnect_endpoints_command=command))
            session.close()
        await server.stop(_GRACE_S)
        self._pipes.close()

    def _handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        request = protocol.message_class(method.input_type)
        answer = protocol.message_class(method.output_type)
        coders: dict[str, Any] = {
            "request_deserializer": request.FromString,
            "response_serializer": answer.SerializeToString,
        }
        if method.name == "Telemetry":
            return grpc.stream_stream_rpc_method_handler(self._telemetry, **coders)
        work = METHODS[method.name]
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(
                partial(self._stream, method.name, work, answer), **coders
            )
        return grpc.unary_unary_rpc_method_handler(
            partial(self._answer, method.name, work, answer), **coders
        )

    async def _answer(
        self,
        method: str,
        work: Callable[..., Any],
        answer: type[Message],
        request: Message,
        context: Context,
    ) -> Message:
        try:
            return cast(
                "Message", await work(request, await self._call(method, context))
            )
        except Exception as error:  # noqa: BLE001 - turned into an answer
            return _failed(answer, error)

    async def _stream(
        self,
        method: str,
        work: Callable[..., Any],
        answer: type[Message],
        request: Message,
        context: Context,
    ) -> AsyncIterator[Message]:
        try:
            async with contextlib.aclosing(
                work(request, await self._call(method, context))
            ) as responses:
                async for response in responses:
                    yield response
        except Exception as error:  # noqa: BLE001 - turned into an answer
            yield _failed(answer, error)

    async def _telemetry(
        self, commands: AsyncIterator[TelemetryCommand], context: Context
    ) -> AsyncIterator[TelemetryCommand]:
        try:
            async with contextlib.aclosing(
                clients.telemetry(commands, await self._call("Telemetry", context))
            ) as said:
                async for command in said:
                    yield command
        except Exception as error:  # noqa: BLE001 - turned into the stream's end
            refused = _refusal(error)
            is_bad = refused.code in _BAD_REQUESTS
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT
                if is_bad
                else grpc.StatusCode.INTERNAL,
                f"{Code.Name(refused.code)}: {refused.message:.500}",
            )

    async def _call(self, method: str, context: Context) -> Call:
        origin = self._pipes.open.get(context.peer().removeprefix(_PEER))
        if origin is None:
            raise RefusedError(Code.BAD_REQUEST, "the connection has ended")
        call = Call(
            self,
            origin,
            context.invocation_metadata() or (),
            context.time_remaining(),
        )
        await call.identify(method)
        if origin.share is not None:
            origin.share.charge(1, 0)
        return call


def _failed(answer: type[Message], error: Exception) -> Message:
    refused = _refusal(error)
    return answer(status=status(refused.code, refused.message))


def _refusal(error: Exception) -> RefusedError:
    """What a client is told of an error."""
    if isinstance(error, RefusedError):
        return error
    log.error("call failed", exc_info=error)
    return RefusedError(
        Code.INTERNAL_SERVER_ERROR, "the broker failed; its log says why"
    )
