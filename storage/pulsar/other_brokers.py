"""What the states of other brokers say of partitions that were theirs.

Asked about a queue that has come from another broker, and of which neither the topic
nor this broker's state says where it ends: its messages are all gone by then. A new
queue looks the same, so what was read is used for a while: what matters was written
long before Pulsar deleted those messages.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.end_offsets import PREFIX, decode_end
from ropeway.storage.pulsar.errors import PulsarError
from ropeway.storage.pulsar.state import state_topic
from ropeway.storage.pulsar.state_replica import Replica

if TYPE_CHECKING:
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry

KEPT_S = 60.0
"""A state with 100,000 facts takes 0.4 s of CPU to read: less than 1 % then."""


class OtherBrokers:
    """Reads the states of a namespace's other brokers, when it is asked.

    Args:
        client: The cluster's; it stays the caller's, as `admin` does.
        admin: Lists topics.
        space: `tenant/namespace`.
        own: The full name of this broker's state topic.
        kept_s: For how long what was read is used.
    """

    def __init__(
        self,
        client: PulsarClient,
        admin: Admin,
        space: str,
        own: str,
        kept_s: float = KEPT_S,
    ) -> None:
        self._client = client
        self._admin = admin
        self._space = space
        self._own = own
        self._kept_s = kept_s
        self._read_s = 0.0
        self._reading: asyncio.Task[dict[str, int]] | None = None

    async def end(self, key: str) -> int | None:
        """The end that another broker has noted; the largest, where several have.

        Raises:
            LogUnavailableError: A state cannot be read now.
        """
        reading, now_s = self._reading, time.monotonic()
        if reading is None or now_s - self._read_s > self._kept_s:
            self._read_s = now_s
            reading = self._reading = asyncio.ensure_future(self._read())
        try:
            # Several wait for it.
            return (await asyncio.shield(reading)).get(key)
        except PulsarError as error:
            self._reading = None
            raise LogUnavailableError(f"states of other brokers: {error}") from error
        except LogUnavailableError:
            self._reading = None
            raise

    async def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> dict[str, int]:
        ends: dict[str, int] = {}
        states = state_topic(self._space, "")
        for topic in await self._admin.topics(self._space):
            if topic.startswith(states) and topic != self._own:
                for key, value in (await self._facts(topic)).items():
                    end = decode_end(key, value) if key.startswith(PREFIX) else None
                    if end is not None:
                        ends[key] = max(end, ends.get(key, 0))
        return ends

    async def _facts(self, topic: str) -> dict[str, str]:
        replica = Replica(self._client, topic, _not_ours, _changed)
        try:
            await replica.open()
            return replica.facts.values
        finally:
            await replica.close()


def _not_ours(_entry: Entry) -> None:
    """No entry is one that this node waits for."""


def _changed(_key: str, _value: str | None) -> None:
    """Nobody watches."""
