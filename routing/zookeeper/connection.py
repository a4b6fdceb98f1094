"""kazoo's client with what it does not tell: when it connected, and for how long.

The only file that reaches into kazoo. It leans on `ConnectionHandler._connect` and on
the queue of requests that waits for it, as of kazoo 2.11.
"""

from __future__ import annotations

import logging
import select
import time
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import _CONNECTION_DROP, ConnectionHandler
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.routing.zookeeper.zookeeper_config import (
        ZooKeeperConfig,
        ZooKeeperSettings,
    )

_READ_TIMEOUT = 2 / 3
"""kazoo gives a connection up after this part of what the session may be silent."""

# What kazoo says of each attempt to connect is told once, in words of ours.
_kazoo_log = logging.getLogger("ropeway.kazoo")
_kazoo_log.setLevel(logging.CRITICAL)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # untyped
    """kazoo's, with another way to wait for sockets.

    kazoo's own makes and closes an epoll object each time, a third of what a request
    costs, and a start makes one for each topic. And it does not see what TLS has
    decrypted already, so that an answer waits for the next one.
    """

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        _: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        poll = select.poll()
        for one in readers:
            poll.register(one, select.POLLIN)
        for one in writers:
            poll.register(one, select.POLLOUT)
        decrypted = [
            one for one in readers if hasattr(one, "pending") and one.pending()
        ]
        wait_ms = 0 if decrypted else timeout and timeout * 1000
        ready = {fd for fd, _ in poll.poll(wait_ms)}
        return (
            [one for one in readers if one.fileno() in ready or one in decrypted],
            [one for one in writers if one.fileno() in ready],
            [],
        )


class _Connection(ConnectionHandler):  # type: ignore[misc]  # untyped
    def __init__(
        self, client: KazooClient, connected: Callable[[int, float, float], None]
    ) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger)  # noqa: SLF001
        self._told = connected

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        """Connect, and say so when requests can be sent."""
        self._give_up_waiting()
        sent_s = time.monotonic()
        timeouts = super()._connect(host, hostip, port)
        read_ms, _ = timeouts
        self._told(self.client._session_id, sent_s, read_ms / _READ_TIMEOUT / 1000)  # noqa: SLF001
        return timeouts

    def _give_up_waiting(self) -> None:
        """Let no request that was made for the last connection be sent on this one.

        Who made it has been told, or will be, that it may not have been done; it must
        not be done much later.
        """
        waiting = self.client._queue  # noqa: SLF001
        for _ in range(len(waiting)):
            request, result = waiting.popleft()
            if result is None:
                # The request to close, for which nobody waits.
                waiting.append((request, result))
            else:
                result.set_exception(ConnectionLoss())


def drop(client: KazooClient) -> None:
    """Have a client lose its connection, on kazoo's thread, and make another.

    kazoo notices by itself that nobody answers only while nothing is asked: each
    request puts off the ping whose answer it waits for.
    """
    client._call(_CONNECTION_DROP, client.handler.async_result())  # noqa: SLF001


def make_client(
    place: ZooKeeperConfig,
    settings: ZooKeeperSettings,
    connected: Callable[[int, float, float], None],
) -> KazooClient:
    """A client that connects again and again once it was started.

    Args:
        place: The servers.
        settings: How they are reached.
        connected: Called on kazoo's thread for each connection with the session's
            number, a time in seconds of `time.monotonic` after which the servers heard
            of it, and for how many seconds it may be silent.
    """
    digest = f"{settings.user}:{settings.password}"
    tls = settings.tls
    files: dict[str, object] = {}
    if tls is not None:
        files = {
            "use_ssl": True,
            "ca": tls.ca and str(tls.ca),
            "certfile": tls.certificate and str(tls.certificate),
            "keyfile": tls.key and str(tls.key),
            "check_hostname": tls.check_host,
        }
    client = KazooClient(
        hosts=place.hosts,
        timeout=settings.session_s,
        handler=_Handler(),
        auth_data=[("digest", digest)] if settings.user else None,
        default_acl=CREATOR_ALL_ACL if settings.user else None,
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0),
        logger=_kazoo_log,
        **files,
    )
    client._connection = _Connection(client, connected)  # noqa: SLF001
    return client
