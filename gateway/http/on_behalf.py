"""Requests in the name of somebody who has signed in to the page.

They go to brokers as requests go that a node sends on for its clients: signed, and with
who sent them and from where. So each broker decides by its own rules what that one may
do, and no password travels.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.acl.api import Channel
from ropeway.client.config import ClientConfig
from ropeway.client.connection import Response
from ropeway.client.connections import Connections
from ropeway.client.errors import (
    BadResponseError,
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.gateway.http.console import Console
from ropeway.gateway.node.forwarder import Forwarder, ForwardingError
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire.codes import Language, ResponseCode
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Container

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.app import App
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.header import Header

_NEVER_S = 365 * 86400.0
"""The console asks for each route when it needs it."""
_PORT = 0
"""A browser's port says nothing: it has several, and new ones all the time."""


class OnBehalf(Connections):
    """The connections of a console whose user has signed in.

    Args:
        forwarder: The node's connections to others, and to itself.
        source: Where the user is.
        principal: Who that is; None where nobody knows, which a dry run lets pass.
    """

    def __init__(
        self, forwarder: Forwarder, source: Source, principal: Principal | None
    ) -> None:
        super().__init__(ClientConfig(), _nobody_listens)
        self._forwarder = forwarder
        self.source = source
        self.principal = principal
        # From a node it is anyway, so that one goes without saying.
        is_said = source.channel is not Channel.FORWARDED
        self._channel = source.channel if is_said else None

    async def request(
        self,
        address: str,
        header: Header,
        body: Buffer = b"",
        *,
        timeout_s: float | None = None,
        expect: Container[int] = (ResponseCode.SUCCESS,),
    ) -> Response:
        """Send a request in the user's name, and wait for its answer."""
        frame = encode_frame(
            row_of(type(header)).code,
            0,
            fields=to_fields(header),
            body=body,
            language=Language.PYTHON,
        )
        try:
            async with asyncio.timeout(timeout_s or self._config.request_timeout_s):
                answer = await self._forwarder.forward(
                    address,
                    frame,
                    host_port.join(self.source.address, _PORT),
                    self.principal,
                    channel=self._channel,
                )
        except TimeoutError as error:
            raise RequestTimeoutError(address, "no answer in time") from error
        except ForwardingError as error:
            raise ConnectionFailedError(address, str(error)) from error
        response = _read(answer, address)
        if response.code not in expect:
            raise ResponseError(response.code, response.remark, address)
        return response


def console_of(app: App, user: OnBehalf) -> Console:
    """A console that asks brokers in a user's name; it is not started yet."""
    settings = ClientConfig(route_interval_s=_NEVER_S)
    return Console(
        app.server.listeners[0].advertised, config=settings, connections=user
    )


def _read(answer: bytes, address: str) -> Response:
    try:
        (frame,) = FrameReader().feed(answer)
        envelope = decode_envelope(frame.serialize_type, frame.header)
    except (FrameError, ValueError) as error:
        raise BadResponseError(f"{address}: {error}") from error
    return Response(
        envelope.code, envelope.remark, envelope.ext_fields, frame.body, address
    )


def _nobody_listens(_address: str) -> None:
    """Nothing is to be done when a connection is opened: none is."""
