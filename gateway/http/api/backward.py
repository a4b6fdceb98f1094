"""A topic's messages from the newest back, a page at a time, perhaps with a text.

A page ends with a cursor: how far each queue was read. The next page goes on there, and
neither repeats nor leaves out a message, whatever is sent meanwhile.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.http.params import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.client.lags import QueueSpan
    from ropeway.client.message import MessageQueue, ReceivedMessage
    from ropeway.gateway.http.console import Console

CHUNK = 32
"""Messages of a queue that are read at once."""
MAX_CURSOR = 7000
"""Characters: what a URL can hold, for some hundred queues."""
_OFFSET = re.compile(r"[0-9]{1,16}")
MOST_LOOKED = 2000
"""Messages that are read for a page, of which few may have the text."""


class Page(NamedTuple):
    """Some messages, the newest first."""

    messages: list[ReceivedMessage]
    looked: int
    """How many were read for it."""
    cursor: str | None
    """Where the next page begins; None where there is none."""


class _Queue:
    """A queue that is read back from its end."""

    def __init__(self, console: Console, span: QueueSpan, end: int) -> None:
        self.queue: MessageQueue = span.queue
        self.end = end
        """The offset of the last message that was taken, or the end."""
        self._console = console
        self._begin = span.begin
        self._unread = end
        self._read: list[ReceivedMessage] = []

    async def fill(self) -> None:
        """Read some more, where nothing is at hand and there is more."""
        while not self._read and self._unread > self._begin:
            begin = max(self._begin, self._unread - CHUNK)
            self._read = await self._console.read(
                self.queue, begin, self._unread - begin
            )
            self._unread = begin

    def newest(self) -> ReceivedMessage | None:
        """The next message, or None where there is none."""
        return self._read[-1] if self._read else None

    def take(self) -> ReceivedMessage:
        """The next message, which is the next no more."""
        message = self._read.pop()
        self.end = message.queue_offset
        return message


async def page(
    console: Console,
    spans: Sequence[QueueSpan],
    *,
    limit: int,
    text: str = "",
    cursor: str = "",
    most: int = MOST_LOOKED,
) -> Page:
    """Read a page.

    Args:
        console: Asks.
        spans: What each queue of the topic holds.
        limit: Messages of a page.
        text: What ids, keys, tags, topics or bodies must have in them, in any case.
        cursor: Where the page before it ended.
        most: Messages to read for it.

    Raises:
        RefusedError: It is no cursor of this topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    ends = _ends(cursor, spans)
    queues = [
        _Queue(console, span, min(span.end, end))
        for span, end in zip(spans, ends, strict=True)
    ]
    await console.gather(one.fill() for one in queues)
    heads = [entry for number in range(len(queues)) if (entry := _head(queues, number))]
    heapq.heapify(heads)
    found: list[ReceivedMessage] = []
    looked = 0
    while heads and len(found) < limit and looked < most:
        number = heads[0][-1]
        message = queues[number].take()
        looked += 1
        if not text or has(message, text.lower()):
            found.append(message)
        await queues[number].fill()
        entry = _head(queues, number)
        if entry is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, entry)
    rest = ",".join(str(one.end) for one in queues)
    return Page(found, looked, rest if heads else None)


def has(message: ReceivedMessage, text: str) -> bool:
    """Whether a message has a text in lower case in its names or its body."""
    named = (message.msg_id, message.offset_msg_id, message.topic, message.tags or "")
    return (
        any(text in one.lower() for one in (*named, *message.keys))
        or text in message.body.decode(errors="replace").lower()
    )


def _head(queues: list[_Queue], number: int) -> tuple[int, int, int] | None:
    message = queues[number].newest()
    if message is None:
        return None
    return (-message.store_ms, -message.message_id, number)


def _ends(cursor: str, spans: Sequence[QueueSpan]) -> list[int]:
    """Where each queue goes on, in the order of their names."""
    if not cursor:
        return [one.end for one in spans]
    parts = cursor.split(",")
    if len(parts) != len(spans) or not all(map(_OFFSET.fullmatch, parts)):
        raise RefusedError(
            f"cursor is {cursor!r:.80}; allowed: that of an answer, as long as the "
            "topic has as many queues"
        )
    return [int(part) for part in parts]
