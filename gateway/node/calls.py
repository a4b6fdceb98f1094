"""Requests of this node to its clients, each with the answer that it waits for."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.link import Link

ANSWER_S = 10.0
"""How long a client may take, as with a real broker (Broker2Client.callClient)."""
_MAX_OPAQUE = 0x7FFFFFFF


class NoAnswerError(Exception):
    """A client did not answer; nobody knows what it did with the request."""


class ClientAnswer(NamedTuple):
    """What a client answered."""

    code: int
    remark: str | None
    body: bytes


class Calls:
    """The requests that clients of this node have not answered yet."""

    def __init__(self) -> None:
        self._opaques = itertools.count(1)
        self._open: dict[Link, dict[int, asyncio.Future[ClientAnswer]]] = {}

    async def ask(
        self, link: Link, frame: Callable[[int], bytes], wait_s: float = ANSWER_S
    ) -> ClientAnswer:
        """Send a client a request, and wait for its answer.

        Args:
            link: The client's connection, which is open.
            frame: Makes the request with an opaque number.
            wait_s: For how long.

        Raises:
            NoAnswerError: The connection ended, or nothing came in time.
        """
        opaque = next(self._opaques) & _MAX_OPAQUE
        answered: asyncio.Future[ClientAnswer] = (
            asyncio.get_running_loop().create_future()
        )
        self._open.setdefault(link, {})[opaque] = answered
        link.push(frame(opaque))
        try:
            return await asyncio.wait_for(answered, wait_s)
        except TimeoutError as error:
            raise NoAnswerError(
                f"client {link.address} did not answer within {wait_s:g} s"
            ) from error
        finally:
            self._forget(link, opaque)

    def _forget(self, link: Link, opaque: int) -> None:
        asked = self._open.get(link, {})
        asked.pop(opaque, None)
        if not asked:
            self._open.pop(link, None)

    def answered(self, link: Link, opaque: int, answer: ClientAnswer) -> bool:
        """An answer came; False where nobody waits for it, or not any more."""
        answered = self._open.get(link, {}).get(opaque)
        if answered is None or answered.done():
            return False
        answered.set_result(answer)
        return True

    def disconnected(self, link: Link) -> None:
        """A connection ended, and with it what was asked on it."""
        for answered in self._open.pop(link, {}).values():
            if not answered.done():
                answered.set_exception(
                    NoAnswerError(f"client {link.address} has gone without an answer")
                )
