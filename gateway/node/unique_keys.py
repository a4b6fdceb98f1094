"""Unique keys for messages whose producer gave none.

Source: the shape of MessageClientIDSetter.createUniqID, RocketMQ 5.3.4: 32 hex digits.
"""

from __future__ import annotations

import itertools
import secrets


class UniqueKeys:
    """Makes keys that no other process or client makes."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(10).upper()
        self._numbers = itertools.count(secrets.randbits(40))

    def make(self) -> str:
        """A new key."""
        return f"{self._prefix}{next(self._numbers) & 0xFFFFFFFFFFFF:012X}"
