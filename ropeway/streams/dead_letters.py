"""Letters: records that a job goes on without go to a topic, with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ropeway.client import Message, Producer
from ropeway.client.retry import through_outages
from ropeway.client.sync import LoopThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.spark.options import Options
    from ropeway.streams.records import Record

_GROUP = "ropeway-streams"
_REASON_LENGTH = 1000
_CONTROLS = dict.fromkeys(range(32), " ")
"""Properties have two of these between them."""

ERROR = "ROPEWAY_ERROR"
"""The property that says which step failed, and why."""

LATE = "ROPEWAY_LATE"
"""The property that says for which step a record was late, and where that was."""


class DeadLetters:
    """Sends what a step failed at to a topic, at least once.

    A body is the message's as it came, or where a shuffle lies between, the value in
    Python's words. It is an object that Spark takes to its workers.

    Args:
        options: How to reach the server.
        topic: Where they go.
    """

    PROPERTY = ERROR

    def __init__(self, options: Options, topic: str) -> None:
        self._options = options
        self._topic = topic

    def __call__(self, failed: Sequence[tuple[Record, object]]) -> None:
        """Send them, and return when all are stored.

        Raises:
            RemotingError: Some are not; the batch has to come again.
        """
        # It opens a client each time: dead letters are rare.
        thread = LoopThread("ropeway-dead-letters")
        try:
            left = [self._letter(*one) for one in failed]
            thread.call(
                through_outages(
                    lambda: self._send(left), self._options.outage_timeout_s
                )
            )
        finally:
            thread.stop()

    async def _send(self, left: list[Message]) -> None:
        """Send letters; those that are stored are left no more."""
        options = self._options
        async with Producer(
            options.name_server, _GROUP, config=options.producer_config()
        ) as producer:
            while left:
                await producer.send(left[0])
                del left[0]

    def _letter(self, record: Record, reason: object) -> Message:
        text = str(reason).translate(_CONTROLS)[:_REASON_LENGTH]
        body = self.body(record)
        return Message(self._topic, body, properties={self.PROPERTY: text})

    def body(self, record: Record) -> bytes:
        """What the letter has of a record."""
        _, value, _ = record
        # A message has to have a body.
        is_body = isinstance(value, bytes) and value
        return value if is_body else repr(value).encode()


class LateLetters(DeadLetters):
    """Sends records that came too late for their windows: `[key, value, time in ms]`.

    They are JSON, in Python's words where JSON has none.
    """

    PROPERTY = LATE

    def body(self, record: Record) -> bytes:
        """What the letter has of a record."""
        try:
            return json.dumps(record, default=repr).encode()
        except (TypeError, ValueError):
            # Its keys are what JSON does not have.
            return repr(record).encode()
