"""What compaction needs to know of a stored message: its key, and whether it deletes.

The whole KEYS is the key, several words and all, as RocketMQ's brokers have it. A
message without a body is a tombstone.

Source: CompactionLog.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire import compaction_rows, properties

if TYPE_CHECKING:
    from collections.abc import Mapping


class MissingKeyError(Exception):
    """A message for a compacted topic has no key."""

    def __init__(self) -> None:
        # RocketMQ's own words: SendMessageProcessor.java, 5.3.4.
        super().__init__("Required message key is missing")


class MessageKeys:
    """Reads stored messages for compaction."""

    key = staticmethod(compaction_rows.key_of)
    rows = staticmethod(compaction_rows.describe)


def check(pairs: Mapping[str, str]) -> None:
    """See to it that a message has a key.

    Raises:
        MissingKeyError: It has none.
    """
    if not pairs.get(properties.KEYS, "").strip():
        raise MissingKeyError
