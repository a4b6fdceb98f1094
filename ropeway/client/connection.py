"""One connection: requests out, answers in by their opaque, a server's requests too."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, NamedTuple, cast

from ropeway.client.credentials import signed
from ropeway.client.errors import (
    BadResponseError,
    ConnectionFailedError,
    RequestTimeoutError,
)
from ropeway.common.reasons import reason_of
from ropeway.gateway.wire import bodies, host_port
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    Language,
    ResponseCode,
)
from ropeway.gateway.wire.errors import FrameError, HeaderError
from ropeway.gateway.wire.frame import (
    Buffer,
    Envelope,
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import H, Header, from_fields, row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from ropeway.client.config import ClientConfig

    Handler = Callable[[msgspec.Raw, bytes], bytes | None]
    """What to do on a request of a server; the body of the answer."""

_log = logging.getLogger(__name__)

SILENCE_S = 1.0
"""A request that waited at least so long while nothing at all was heard gives the
connection up: the peer may be gone without a word. Java closes after any time-out."""


class Response(NamedTuple):
    """A server's answer, its fields not yet looked at."""

    code: int
    remark: str | None
    fields: msgspec.Raw
    body: bytes
    address: str

    def header(self, kind: type[H]) -> H:
        """Read the answer's fields.

        Raises:
            BadResponseError: One is missing or wrong.
        """
        try:
            return from_fields(kind, self.fields)
        except HeaderError as error:
            raise BadResponseError(f"{self.address}: {error}") from error

    def json(self, kind: type[bodies.B]) -> bodies.B:
        """Read the answer's body.

        Raises:
            BadResponseError: It is not what it should be.
        """
        try:
            return bodies.decode(kind, self.body)
        except HeaderError as error:
            raise BadResponseError(f"{self.address}: {error}") from error


class Connection(asyncio.Protocol):
    """A connection that many requests share; use `connect` to make one.

    Args:
        address: The peer, as `host:port`; for messages only.
        config: Time-outs and credentials.
        handlers: What to do on a server's request, by its code. Others are answered
            with REQUEST_CODE_NOT_SUPPORTED.
    """

    def __init__(
        self,
        address: str,
        config: ClientConfig,
        handlers: Mapping[int, Handler],
    ) -> None:
        self._address = address
        self._credentials = config.credentials
        self._handlers = handlers
        self._reader = FrameReader()
        self._opaques = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Response]] = {}
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._closed = asyncio.Event()
        self._why = "connection lost"
        self._heard_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def request(
        self, header: Header, body: Buffer = b"", *, timeout_s: float
    ) -> Response:
        """Send a request and wait for its answer, whatever its code.

        Raises:
            RequestTimeoutError: No answer within `timeout_s`.
            ConnectionFailedError: The connection was lost meanwhile.
        """
        loop = asyncio.get_running_loop()
        opaque = next(self._opaques) & 0x7FFFFFFF
        answer: asyncio.Future[Response] = loop.create_future()
        asked_at = loop.time()
        self._pending[opaque] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._write(header, body, opaque, 0)
                return await answer
        except TimeoutError as error:
            if loop.time() - max(asked_at, self._heard_at) >= SILENCE_S:
                self._why = "the peer is silent"
                self._abort()
            name = row_of(type(header)).code.name
            raise RequestTimeoutError(
                self._address, f"no answer to {name} within {timeout_s:.1f} s"
            ) from error
        finally:
            del self._pending[opaque]
            answer.cancel()
            # Its error has this frame, which would have it: a cycle.
            del answer

    async def send_one_way(self, header: Header, body: Buffer = b"") -> None:
        """Send a request that has no answer; returns when it is on its way.

        Raises:
            ConnectionFailedError: The connection is lost.
        """
        await self._write(header, body, next(self._opaques) & 0x7FFFFFFF, ONE_WAY_FLAG)

    async def _write(
        self, header: Header, body: Buffer, opaque: int, flag: int
    ) -> None:
        fields = to_fields(header)
        if self._credentials is not None:
            fields = signed(fields, body, self._credentials)
        frame = encode_frame(
            row_of(type(header)).code,
            opaque,
            flag=flag,
            fields=fields,
            body=body,
            language=Language.PYTHON,
        )
        await self._writable.wait()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionFailedError(self._address, self._why)
        self._transport.write(frame)

    async def close(self) -> None:
        """Close the connection; requests under way fail."""
        self._why = "closed by this client"
        self._abort()
        await self._closed.wait()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport."""
        # It is one, but on uvloop not by inheritance.
        self._transport = cast("asyncio.Transport", transport)
        self._writable.set()

    def pause_writing(self) -> None:
        """Hold requests back, as the server reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let requests go on."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what waits for an answer."""
        reason = f"{self._why}: {reason_of(exc)}" if exc else self._why
        self._writable.set()
        self._closed.set()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionFailedError(self._address, reason))

    def data_received(self, data: bytes) -> None:
        """Hand answers to who waits for them, and requests to their handlers."""
        self._heard_at = asyncio.get_running_loop().time()
        try:
            for frame in self._reader.feed(data):
                envelope = decode_envelope(frame.serialize_type, frame.header)
                if envelope.flag & RESPONSE_FLAG:
                    self._answer(envelope, frame.body)
                else:
                    self._serve(envelope, frame.body)
        except FrameError as error:
            self._why = f"the stream cannot be read: {error}"
            if not self._pending:
                # Nobody is told by an error.
                _log.warning("address=%s %s", self._address, self._why)
            self._abort()

    def _answer(self, envelope: Envelope, body: bytes) -> None:
        answer = self._pending.get(envelope.opaque)
        if answer is not None and not answer.done():
            fields = envelope.ext_fields
            answer.set_result(
                Response(envelope.code, envelope.remark, fields, body, self._address)
            )

    def _serve(self, envelope: Envelope, body: bytes) -> None:
        code, remark, answer = ResponseCode.SUCCESS, None, b""
        if handler := self._handlers.get(envelope.code):
            try:
                answer = handler(envelope.ext_fields, body) or b""
            except HeaderError as error:
                code, remark = ResponseCode.SYSTEM_ERROR, str(error)
        else:
            code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            remark = f"request code {envelope.code} not supported"
        if not envelope.flag & ONE_WAY_FLAG:
            assert self._transport is not None
            self._transport.write(
                encode_frame(
                    code,
                    envelope.opaque,
                    flag=RESPONSE_FLAG,
                    remark=remark,
                    body=answer,
                    language=Language.PYTHON,
                )
            )


async def connect(
    address: str,
    config: ClientConfig,
    handlers: Mapping[int, Handler],
) -> Connection:
    """Connect to `host:port`.

    Raises:
        ConnectionFailedError: Nobody listens there, or TLS failed, or it took longer
            than `connect_timeout_s`.
    """
    loop = asyncio.get_running_loop()
    try:
        host, port = host_port.split(address)
        async with asyncio.timeout(config.connect_timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(address, config, handlers),
                host,
                port,
                ssl=config.tls,
                server_hostname=config.tls_server_name if config.tls else None,
            )
    except TimeoutError as error:
        reason = f"no connection within {config.connect_timeout_s:.1f} s"
        raise ConnectionFailedError(address, reason) from error
    except (OSError, ValueError) as error:
        raise ConnectionFailedError(
            address, f"no connection: {reason_of(error)}"
        ) from error
    return connection
