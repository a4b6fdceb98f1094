"""Opening a partition: become its sole writer, and find out where its offsets go on.

The broker knows the last sequence id that the producer's name has used, which is the
last offset; the newest pack says its own offsets. Of the two

    equal                    that is the end
    no pack, an id           all was trimmed or truncated; the id is the last offset
    a pack, no id            the broker has forgotten the producer; the pack tells
    the id is larger         a pack is still on its way to the disks: look again
    anything else            somebody else has written, or packs were lost: refuse
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from storage.api import LogDamagedError
from storage.pulsar.entry import Position
from storage.pulsar.errors import PulsarError
from storage.pulsar.finding import Found, probe, unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.pulsar.admin import Admin
    from storage.pulsar.client import PulsarClient
    from storage.pulsar.partition import PulsarPartition
    from storage.pulsar.producer import Producer
    from storage.pulsar.settings import PulsarLogSettings

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 1.0


class Opened(NamedTuple):
    """A partition whose sole writer we are."""

    producer: Producer
    oldest: Found | None
    newest: Found | None
    end: int

    @property
    def first(self) -> int:
        """The offset of the oldest record."""
        return self.oldest.pack.base_offset if self.oldest else self.end


async def open_partition(
    client: PulsarClient,
    admin: Admin,
    partition: PulsarPartition,
    settings: PulsarLogSettings,
    lost: Callable[[PulsarError], None],
) -> Opened:
    """Take a partition over, and find its ends.

    Raises:
        LogUnavailableError: It cannot be had now.
        LogDamagedError: The broker and the newest pack contradict each other.
        NoSuchPartitionError: There is no such topic.
    """
    deadline = time.monotonic() + settings.open_s
    try:
        # An old owner may still be there: the client tries again until it is fenced.
        producer = await client.producer(
            partition.full_name, settings.producer_name, lost=lost
        )
    except PulsarError as error:
        raise unavailable(partition, error) from error
    try:
        return await _find_ends(client, admin, partition, producer, deadline)
    except BaseException:
        await producer.close()
        raise


async def _find_ends(
    client: PulsarClient,
    admin: Admin,
    partition: PulsarPartition,
    producer: Producer,
    deadline: float,
) -> Opened:
    last = producer.last_sequence_id
    wait_s = FIRST_WAIT_S
    while True:
        oldest, newest = await ends(client, admin, partition)
        in_topic = newest.pack.end - 1 if newest else -1
        if newest is None or last in (-1, in_topic):
            return Opened(producer, oldest, newest, max(last, in_topic) + 1)
        if last < in_topic or time.monotonic() + wait_s > deadline:
            raise LogDamagedError(
                f"{partition.full_name}: the newest pack ends with offset {in_topic} "
                f"and Pulsar says the last was {last}; somebody else has written, or "
                "packs were lost"
            )
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)


async def ends(
    client: PulsarClient, admin: Admin, partition: PulsarPartition
) -> tuple[Found | None, Found | None]:
    """The oldest and the newest pack that Pulsar has; None twice where it has none."""
    ledgers = [
        one for one in await admin.ledgers(partition.name, partition.number) if one[1]
    ]
    if not ledgers:
        return None, None
    first = Position(ledgers[0][0], 0)
    last = Position(ledgers[-1][0], ledgers[-1][1] - 1)
    oldest = await probe(client, partition, first)
    newest = oldest if first == last else await probe(client, partition, last)
    return oldest, newest
