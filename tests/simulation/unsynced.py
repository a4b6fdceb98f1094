"""Records that a machine's log has and its disk may lose: nobody may be shown them.

A record is known by its head, which has its place, and by the first word of its body,
which no other message has. The same message elsewhere is another record.
"""

from __future__ import annotations

import re

_RECORD = re.compile(rb"(?s).{88}[a-z]+-\d+(?:\.\d+)?-\d+")
"""The 88 bytes before a body, and the name that `clients.Load.body` begins it with."""


class Unsynced:
    """Those of one machine."""

    def __init__(self) -> None:
        self._written: dict[int, list[tuple[int, bytes]]] = {}
        """By inode: when each was written, as the disk counts, and the record."""

    def wrote(self, inode: int, number: int, data: bytes) -> None:
        """Note what a write to the log has."""
        found = [(number, one) for one in _RECORD.findall(data)]
        if found:
            self._written.setdefault(inode, []).extend(found)

    def synced(self, inode: int, to: int) -> None:
        """Forget what was written until a number."""
        if written := self._written.pop(inode, None):
            self._written[inode] = left = [one for one in written if one[0] > to]
            if not left:
                del self._written[inode]

    def shown(self, data: bytes) -> list[bytes]:
        """The bodies of those that are among what is sent to a client."""
        if not self._written:
            return []
        sent = {*_RECORD.findall(data)}
        return [
            record[88:]
            for written in self._written.values()
            for _, record in written
            if record in sent
        ]
