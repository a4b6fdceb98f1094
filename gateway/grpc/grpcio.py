"""The service on grpcio's server: the only file that imports grpc.

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
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from ropeway.gateway.grpc import messaging_service, protocol
from ropeway.gateway.grpc.calls import Asked
from ropeway.gateway.grpc.framing import CallError
from ropeway.gateway.grpc.messages import Request
from ropeway.gateway.grpc.messaging_service import TelemetryRefusedError
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import status
from ropeway.gateway.pipes import Pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.protobuf.message import Message

    from ropeway.gateway.grpc.messaging_service import Messaging, Method
    from ropeway.gateway.grpc.protocol import TelemetryCommand
    from ropeway.gateway.server import Server

_PEER = "unix-abstract:"

Context = grpc.aio.ServicerContext[Any, Any]


class GrpcioServer:
    """Takes calls of what is piped to a server of grpcio's.

    Args:
        service: Answers the calls.
        server: Whose listeners' connections are piped.
    """

    def __init__(self, service: Messaging, server: Server) -> None:
        self._service = service
        self._server = server
        self._pipes: Pipes

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Take calls until the end of the block."""
        limits = self._service.node.config.limits
        limit = self._service.limit_bytes
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", -1),
                # Of one connection. Clients wait with more, as HTTP/2 wants it.
                ("grpc.max_concurrent_streams", limits.requests_in_flight),
                ("grpc.max_metadata_size", messaging_service.METADATA_BYTES),
                ("grpc.absolute_max_metadata_size", messaging_service.METADATA_BYTES),
                ("grpc.keepalive_time_ms", int(messaging_service.KEEPALIVE_S * 1000)),
                # Clients' own are welcome: Java and Go send them each 30 s and less.
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        server.add_registered_method_handlers(
            protocol.SERVICE.full_name,
            {one.name: self._handler(one) for one in messaging_service.methods()},
        )
        with tempfile.TemporaryDirectory(prefix="ropeway-") as folder:
            # Nobody else may enter the folder, so nobody else may connect.
            path = Path(folder, "grpc")
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._pipes = Pipes(path, self._service.budget, limit)
            self._server.http2 = self._pipes
            try:
                yield
            finally:
                self._service.end_sessions()
                await server.stop(messaging_service.GRACE_S)
                self._pipes.close()

    def _handler(self, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
        coders: dict[str, Any] = {
            # Decoded when it is known who calls.
            "request_deserializer": partial(self._received, method.request),
            "response_serializer": method.answer.SerializeToString,
        }
        if method.streams_in:
            return grpc.stream_stream_rpc_method_handler(self._telemetry, **coders)
        if method.streams_out:
            return grpc.unary_stream_rpc_method_handler(
                partial(self._stream, method), **coders
            )
        return grpc.unary_unary_rpc_method_handler(
            partial(self._answer, method), **coders
        )

    def _received(self, kind: type[Message], data: bytes) -> Request:
        return Request(kind, data, self._service.node.config.requests)

    async def _answer(
        self, method: Method, request: Request, context: Context
    ) -> Message:
        asked = self._asked(context)
        if asked is None:
            return method.answer(status=_GONE)
        try:
            return await self._service.answer(method, request, asked)
        except CallError as error:
            await context.abort(_STATUSES[error.status], error.message)

    async def _stream(
        self, method: Method, request: Request, context: Context
    ) -> AsyncIterator[Message]:
        asked = self._asked(context)
        if asked is None:
            return
        try:
            async with contextlib.aclosing(
                self._service.stream(method, request, asked)
            ) as responses:
                async for response in responses:
                    yield response
        except CallError as error:
            await context.abort(_STATUSES[error.status], error.message)

    async def _telemetry(
        self, commands: AsyncIterator[Request], context: Context
    ) -> AsyncIterator[TelemetryCommand]:
        asked = self._asked(context)
        if asked is None:
            return
        try:
            async with contextlib.aclosing(
                self._service.telemetry(commands, asked)
            ) as said:
                async for command in said:
                    yield command
        except TelemetryRefusedError as error:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT
                if error.is_bad
                else grpc.StatusCode.INTERNAL,
                error.message,
            )

    def _asked(self, context: Context) -> Asked | None:
        """The call as it came; None where its connection has ended."""
        origin = self._pipes.open.get(context.peer().removeprefix(_PEER))
        if origin is None:
            return None
        metadata = dict(context.invocation_metadata() or ())
        deadline_s, left_s = None, context.time_remaining()
        if left_s is not None:
            deadline_s = asyncio.get_running_loop().time() + left_s
        return Asked(origin, metadata, deadline_s)


_STATUSES = {one.value[0]: one for one in grpc.StatusCode}
_GONE = status(Code.BAD_REQUEST, "the connection has ended")
