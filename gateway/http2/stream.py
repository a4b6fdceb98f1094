"""One request and its answer; whoever serves makes its own kind of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from ropeway.gateway.http2.headers import Fields

WINDOW_BYTES = 1 << 20
"""DATA that a client may send on a stream, of which that is kept."""


class StreamReceiver(Protocol):
    """What is told of a stream; see `receiver.Receiver`."""

    def keep(self, size: int, stream: Stream) -> None:
        """So much of what came on a stream is kept."""

    def consumed(self, stream: Stream) -> None:
        """What came on a stream needs no memory any more."""

    def sent(self, stream: Stream) -> None:
        """An answer is sent; what its request has still to say is not wanted."""


class HasReceiver(Protocol):
    """A connection, as its streams know it."""

    @property
    def receiver(self) -> StreamReceiver:
        """Whom streams tell."""


class Stream(msgspec.Struct, eq=False):
    """What a connection knows of one stream.

    The methods are called by the connection, and do nothing here. None is called after
    `lost`, nor after what finished the answer has been sent.
    """

    connection: HasReceiver
    id: int
    window: int
    """DATA that may be sent; after a change of settings less than none."""
    room: int = WINDOW_BYTES
    """DATA that may come."""
    kept: int = 0
    """DATA that came and is kept."""
    counts: bool = True
    """Whether the connection counts what waits; else somebody does already."""
    declared: int = -1
    """What is to come by the client's content-length; -1: it does not say."""
    ended: bool = False
    """Whether the client has said all."""
    finished: bool = False
    """Whether the answer is complete, sent or not."""
    waiting: deque[memoryview] = msgspec.field(default_factory=deque)
    """DATA that waits for a window."""
    waiting_bytes: int = 0
    last: bytes | None = None
    """The block that follows it."""

    def begin(self, fields: Fields) -> None:
        """A request has begun; where `ended` is set, that is all of it."""

    def take(self, data: bytes) -> None:
        """DATA came, and more may, unless it is kept; `ended` may be set."""

    def lost(self) -> None:
        """Nothing can be sent any more, and nothing comes."""

    def moved(self) -> None:
        """All that waited for a window has been sent."""
