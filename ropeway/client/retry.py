"""Ask again while servers are away: a restart or a fail-over ends no job."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from ropeway.client.errors import ConnectionFailedError, RemotingError, ResponseError
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

T = TypeVar("T")

_log = logging.getLogger(__name__)

_AWAY = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE})
_FIRST_S, _LONGEST_S = 0.1, 2.0
_TOLD_EACH_S = 10.0


def is_outage(error: RemotingError, also: Collection[int] = ()) -> bool:
    """Return whether the same request may succeed later, with nothing else done.

    Args:
        error: What became of it.
        also: Codes after which it may, besides those that say so themselves.
    """
    if isinstance(error, ResponseError):
        return error.code in _AWAY or error.code in also
    return isinstance(error, ConnectionFailedError)


async def through_outages(
    ask: Callable[[], Awaitable[T]], limit_s: float, also: Collection[int] = ()
) -> T:
    """Ask until servers answer, waiting 0.1 s to 2 s between attempts.

    It is logged when the first attempt fails, and each 10 s after that.

    Args:
        ask: One attempt; it may have been carried out although it fails.
        limit_s: How long after the first failure the last attempt begins, in seconds.
        also: As of `is_outage`.

    Raises:
        RemotingError: It is no outage, or it is one that goes on.
    """
    loop = asyncio.get_running_loop()
    wait_s = _FIRST_S
    failed_at = told_at = -1.0
    while True:
        try:
            return await ask()
        except RemotingError as error:
            now = loop.time()
            if failed_at < 0:
                failed_at = now
            if not is_outage(error, also) or now - failed_at >= limit_s:
                raise
            if told_at < 0 or now - told_at >= _TOLD_EACH_S:
                told_at = now
                _log.warning(
                    "waiting for servers for %.0f s, of %.0f s at most: %s",
                    now - failed_at,
                    limit_s,
                    error,
                )
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_S)
