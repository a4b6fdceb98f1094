"""A name server and broker in one that answers as a test says: it injects faults."""

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple, Self

from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.frame import (
    FrameReader,
    RawFrame,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import decode_fields


class Answer(NamedTuple):
    code: int = ResponseCode.SUCCESS
    fields: dict[str, str] | None = None
    body: bytes = b""
    remark: str | None = None


class Request(NamedTuple):
    code: int
    flag: int
    fields: dict[str, str]
    body: bytes


Behaviour = Callable[[Request], Answer | None]
"""Makes the answer to a request; None leaves it without one."""

STORED = Answer(
    fields={
        "msgId": "7F00000100002A9F0000000000000000",
        "queueId": "0",
        "queueOffset": "7",
    }
)


class FakeServer:
    def __init__(self, queues: int = 4, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.requests: list[Request] = []
        self.behaviours: dict[int, Behaviour] = {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: lambda _: self.route(queues),
            RequestCode.SEND_MESSAGE_V2: lambda _: STORED,
        }
        self.transports: list[asyncio.Transport] = []
        self.address = ""

    def route(self, queues: int) -> Answer:
        body = (
            f'{{"brokerDatas":[{{"brokerAddrs":{{0:"{self.address}"}},"brokerName":"b",'
            f'"cluster":"c"}}],"queueDatas":[{{"brokerName":"b","perm":6,'
            f'"readQueueNums":{queues},"writeQueueNums":{queues}}}]}}'
        )
        return Answer(body=body.encode())

    def asked(self, code: int) -> list[Request]:
        return [request for request in self.requests if request.code == code]

    def push(self, code: int, opaque: int, flag: int = 0) -> None:
        """Send a request of the server's own to every client."""
        for transport in self.transports:
            transport.write(encode_frame(code, opaque, flag=flag, fields={}))

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Peer(self), "127.0.0.1", 0, ssl=self._tls
        )
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """Break every connection."""
        for transport in self.transports:
            transport.abort()
        self.transports.clear()


class _Peer(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._frames = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.transports.append(transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self._answer(frame)

    def _answer(self, frame: RawFrame) -> None:
        envelope = decode_envelope(frame.serialize_type, frame.header)
        fields = decode_fields(envelope.ext_fields)
        request = Request(envelope.code, envelope.flag, fields, frame.body)
        self._server.requests.append(request)
        if envelope.flag & RESPONSE_FLAG:
            return
        behaviour = self._server.behaviours.get(envelope.code, lambda _: Answer())
        answer = behaviour(request)
        if answer is not None and not envelope.flag & ONE_WAY_FLAG:
            self._transport.write(
                encode_frame(
                    answer.code,
                    envelope.opaque,
                    flag=RESPONSE_FLAG,
                    fields=answer.fields or {},
                    body=answer.body,
                    remark=answer.remark,
                )
            )
