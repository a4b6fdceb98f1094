"""One request and its answer; whoever serves makes its own kind of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.gateway.http2.connection import Connection
    from ropeway.gateway.http2.headers import Fields

WINDOW_BYTES = 1 << 20
"""DATA that a client may send on a stream before it was consumed."""


class Stream:
    """What a connection knows of one stream.

    The methods that come first are called by the connection, and do nothing here. None
    is called after `lost`, nor after what finished the answer has been sent.

    Args:
        connection: Whose.
        stream_id: Its number.
        window: DATA that the client takes, at first.
    """

    __slots__ = (
        "connection",
        "counts",
        "declared",
        "ended",
        "finished",
        "id",
        "last",
        "room",
        "unread",
        "waiting",
        "waiting_bytes",
        "window",
    )

    def __init__(self, connection: Connection, stream_id: int, window: int) -> None:
        self.connection = connection
        self.id = stream_id
        self.window = window
        """DATA that may be sent; after a change of settings less than none."""
        self.room = WINDOW_BYTES
        """DATA that may come."""
        self.unread = 0
        """DATA that was consumed, of which the client has not been told."""
        self.counts = True
        """Whether the connection counts what waits; else somebody does already."""
        self.declared = -1
        """What is to come by the client's content-length; -1: it does not say."""
        self.ended = False
        """Whether the client has said all."""
        self.finished = False
        """Whether the answer is complete, sent or not."""
        self.waiting: deque[memoryview] = deque()
        """DATA that waits for a window."""
        self.waiting_bytes = 0
        self.last: bytes | None = None
        """The block that follows it."""

    def begin(self, fields: Fields) -> None:
        """A request has begun; where `ended` is set, that is all of it."""

    def take(self, data: bytes) -> None:
        """DATA came, which counts until it is `consumed`; `ended` may be set."""

    def lost(self) -> None:
        """Nothing can be sent any more, and nothing comes."""

    def moved(self) -> None:
        """All that waited for a window has been sent."""

    def consumed(self, size: int) -> None:
        """So much of what came needs no memory any more: more may come."""
        self.connection.receiver.consumed(size)
        if self.ended:
            return
        self.unread += size
        if self.unread >= WINDOW_BYTES // 2:
            self.connection.receiver.widen(self, self.unread)
            self.unread = 0
