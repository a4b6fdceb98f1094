"""Consumer offsets on Pulsar: facts of the broker's state, indexed by group.

key     offset/<group>/<topic>/<queue id>, names percent-encoded
value   the next offset to consume, in decimal
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import structlog

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.offset_table import OffsetTable

if TYPE_CHECKING:
    from ropeway.storage.state import State

PREFIX = "offset/"

_log = structlog.get_logger()


def encode_key(group: str, topic: str, queue_id: int) -> str:
    """The key of an offset; keys of one group, and of a topic in it, sort together."""
    return f"{_prefix(group, topic)}{queue_id}"


def decode_key(key: str) -> tuple[str, str, int] | None:
    """Group, topic and queue id; None where the key is no offset's."""
    parts = key.removeprefix(PREFIX).split("/")
    if not key.startswith(PREFIX) or len(parts) != 3:  # noqa: PLR2004 - as above
        return None
    try:
        return unquote(parts[0]), unquote(parts[1]), int(parts[2])
    except ValueError:
        return None


def _prefix(group: str, topic: str) -> str:
    return f"{PREFIX}{quote(group, safe='')}/{quote(topic, safe='')}/"


class PulsarOffsets(OffsetTable):
    """Offsets of all groups; see `storage.offsets` for what it promises.

    They can be read on every node, and be committed on the one that leads.

    Args:
        state: The broker's; it stays the caller's.
    """

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state
        self._prefixes: dict[tuple[str, str], str] = {}
        """What keys begin with: making one anew costs more than all the rest."""
        self._closed = False
        for key, value in state.items(PREFIX):
            self._changed(key, value)
        state.watch(PREFIX, self._changed)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the next offset to consume, forwards or backwards.

        Raises:
            LogUnavailableError: This node does not lead, or the offsets are closed.
        """
        self._refuse_when_closed()
        prefix = self._prefixes.get((group, topic))
        if prefix is None:
            prefix = self._prefixes[group, topic] = _prefix(group, topic)
        queues = self._groups.get(group, {}).get(topic)
        if (
            queues is not None
            and queues.get(queue_id) == offset
            and self._state.leading
        ):
            return
        self._state.put(f"{prefix}{queue_id}", str(offset))
        self._set(group, topic, queue_id, offset)

    def forget(
        self,
        *,
        group: str | None = None,
        topic: str | None = None,
        queue_id: int | None = None,
    ) -> None:
        """Drop the offsets of a group, of a topic, or of one on the other.

        Raises:
            LogUnavailableError: This node does not lead, or the offsets are closed.
        """
        self._refuse_when_closed()
        for row in self._rows(group, topic, queue_id):
            self._state.put(encode_key(*row), None)
            self._drop(*row)

    async def flush(self) -> None:
        """Return when all commits so far are kept.

        Raises:
            LogUnavailableError: That is not known, or another node leads now.
        """
        await self._state.flush()

    async def close(self) -> None:
        """Flush, and take no more commits. Twice is fine."""
        if not self._closed:
            self._closed = True
            await self._state.flush()

    def _changed(self, key: str, value: str | None) -> None:
        """Follow what another node committed."""
        row = decode_key(key)
        try:
            offset = None if value is None else int(value)
        except ValueError:
            row = None
        if row is None:
            _log.warning("offset that cannot be read left out", key=key, value=value)
        elif offset is None:
            self._drop(*row)
        else:
            self._set(*row, offset)

    def _drop(self, group: str, topic: str, queue_id: int) -> None:
        if self._remove(group, topic, queue_id):
            self._prefixes.pop((group, topic), None)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise LogUnavailableError("the offsets are closed")
