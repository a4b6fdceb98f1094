"""Raw requests to nodes, and where each partition of a topic is served now."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.nodes import GetTopicPlaces, TopicPlaces
from ropeway.gateway.wire.frame import (
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import Header, decode_fields, row_of, to_fields
from tests.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROUTE_S = 0.1
"""How old a route may be when somebody has reason to doubt it."""
READ_BYTES = 1 << 16
TEMPLATE = "TBW102"
"""The topic that every master has."""


class NotSentError(Exception):
    """A request did not leave: nobody can have done it."""


class Caller:
    """One connection to one node at a time, and one request at a time."""

    def __init__(self) -> None:
        self._address = ""
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self._frames = FrameReader()

    async def ask(
        self, address: str, what: Header, body: bytes = b"", *, seconds: float
    ) -> Frame:
        """Ask a node.

        Raises:
            NotSentError: It cannot be reached.
            OSError: The connection broke.
            TimeoutError: No answer.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._reach(address)
                assert self._writer is not None
                self._writer.write(
                    encode_frame(
                        int(row_of(type(what)).code),
                        1,
                        fields=to_fields(what),
                        body=body,
                    )
                )
                return await self._answer()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def _reach(self, address: str) -> None:
        if self._writer is not None and self._address == address:
            return
        self.close()
        host, port = address.split(":")
        try:
            opened = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError) as error:
            raise NotSentError(f"{address}: {error}") from error
        self._reader, self._writer = opened
        self._address, self._frames = address, FrameReader()

    async def _answer(self) -> Frame:
        assert self._reader is not None
        while data := await self._reader.read(READ_BYTES):
            for serialize_type, header, body in self._frames.feed(data):
                envelope = decode_envelope(serialize_type, bytes(header))
                fields = decode_fields(envelope.ext_fields)
                return Frame(
                    *(envelope.code, envelope.opaque, envelope.flag, envelope.remark),
                    *(fields, bytes(body), b""),
                )
        raise ConnectionResetError("the node closed the connection")


class Place(NamedTuple):
    """Where a partition is served."""

    broker: str
    queue_id: int
    nodes: Sequence[str]
    """Addresses, the master's first."""


class Router:
    """Knows where partitions are; asks all nodes, and believes who answers first."""

    def __init__(self, addresses: Sequence[str], topics: Sequence[str]) -> None:
        self._addresses = addresses
        self._topics = topics
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = 0.0
        self.places: dict[tuple[str, int], Place] = {}
        self.brokers: dict[str, list[str]] = {}

    async def refresh(self) -> None:
        """Look again, unless somebody just did."""
        if time.monotonic() - self._asked_s < ROUTE_S:
            await asyncio.sleep(ROUTE_S / 2)
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._refresh())
        await asyncio.shield(self._asking)

    async def _refresh(self) -> None:
        asking = [asyncio.create_task(self._look(one)) for one in self._addresses]
        try:
            for first in asyncio.as_completed(asking):
                with suppress(OSError, TimeoutError, NotSentError, LookupError):
                    self.brokers, self.places = await first
                    self._asked_s = time.monotonic()
                    return
        finally:
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def _look(
        self, address: str
    ) -> tuple[dict[str, list[str]], dict[tuple[str, int], Place]]:
        brokers = await ranks(address)
        places = {}
        caller = Caller()
        try:
            for topic in self._topics:
                answer = await caller.ask(
                    address, GetTopicPlaces(topic=topic), seconds=2.0
                )
                if answer.code:
                    raise LookupError(answer.remark)
                found = msgspec.json.decode(answer.body, type=TopicPlaces).places
                for broker, partitions in found.items():
                    for number, partition in enumerate(partitions):
                        if broker in brokers:
                            places[topic, partition] = Place(
                                broker, number, brokers[broker]
                            )
        finally:
            caller.close()
        return brokers, places


async def ranks(address: str) -> dict[str, list[str]]:
    """Each broker's nodes as one node tells them, the master first.

    Raises:
        LookupError: It knows none.
        OSError, TimeoutError, NotSentError: No answer.
    """
    caller = Caller()
    try:
        answer = await caller.ask(address, GetRouteInfo(topic=TEMPLATE), seconds=2.0)
    finally:
        caller.close()
    if answer.code:
        raise LookupError(answer.remark)
    route = msgspec.json.decode(answer.body, type=bodies.TopicRoute)
    return {one.broker_name: _in_order(one.broker_addrs) for one in route.broker_datas}


def _in_order(addresses: Mapping[str, str]) -> list[str]:
    return [
        address for _, address in sorted(addresses.items(), key=lambda one: int(one[0]))
    ]
