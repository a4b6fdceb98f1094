"""Undoing zlib within bounds, and off the event loop: a few bytes may stand for many.

Anybody who may send to a topic chooses how long its messages become.
"""

from __future__ import annotations

import zlib

MAX_BODY_BYTES = 16 * 1024 * 1024
"""A body that becomes longer stays compressed: RocketMQ's largest frame. Its producers
hold a body against their limit, 4 MiB, before they compress it."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""So long may all bodies of one look-up become; those beyond it stay compressed."""


def inflate(body: bytes, most_bytes: int = MAX_BODY_BYTES) -> bytes | None:
    """A body as it was before its sender compressed it.

    Args:
        body: What came.
        most_bytes: How long the result may be; never more is made.

    Returns:
        None where it is not zlib, not whole, or becomes longer.
    """
    inflating = zlib.decompressobj()
    try:
        # One byte more tells a longer body from a whole one; 0 would mean no limit.
        inflated = inflating.decompress(body, most_bytes + 1)
    except zlib.error:
        return None
    return inflated if inflating.eof and len(inflated) <= most_bytes else None
