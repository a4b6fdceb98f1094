"""A topic as a node serves it: its set-up, its partitions, what sends need at hand."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import attributes, message_types, names
from ropeway.gateway.wire import message, message_id, receipt
from ropeway.routing.api import (
    PERM_READ,
    PERM_WRITE,
    STORED,
)
from ropeway.storage.api import NotReadyError

if TYPE_CHECKING:
    from ropeway.routing.api import Topic
    from ropeway.storage.api import Partition


class ServedTopic:
    """A topic with its partitions open, one for each queue id of this broker."""

    __slots__ = (
        "compacted",
        "id_bases",
        "kind",
        "magic",
        "message_type",
        "name",
        "name_field",
        "of_lites",
        "of_priorities",
        "of_users",
        "partitions",
        "passed_on",
        "plain",
        "readable",
        "retry_kind",
        "setup",
        "source",
        "writable",
    )

    def __init__(
        self, setup: Topic, partitions: list[Partition], *, typed: bool = False
    ) -> None:
        self.source = setup
        """What the routes say, of which this was made."""
        # Another broker may have changed the numbers for those that it has.
        self.setup = msgspec.structs.replace(
            setup,
            read_queue_nums=min(setup.read_queue_nums, len(partitions)),
            write_queue_nums=min(setup.write_queue_nums, len(partitions)),
        )
        self.name = setup.name
        self.partitions = partitions
        self.magic, self.name_field = message.topic_field(setup.name)
        retry = setup.name.startswith(names.RETRY_PREFIX)
        self.retry_kind = receipt.kind_of(setup.name)
        """How receipts call it: NORMAL, RETRY_V1 or RETRY_V2."""
        self.id_bases = [
            message_id.base(partition.number, retry=retry) for partition in partitions
        ]
        self.readable = bool(
            setup.perm & PERM_READ and setup.name not in names.NOT_FOR_READING
        )
        self.writable = bool(setup.perm & PERM_WRITE or setup.writes == STORED)
        self.passed_on = setup.mirrored and setup.writes != STORED
        """Whether what is sent to it goes to the source of a migration; also for a
        moment, in which nobody stores it, before that is so."""
        self.kind = kind = message_types.type_of_topic(setup.name, setup.attributes)
        """The type of messages that it is for; MIXED: of any."""
        self.of_users = not (
            names.topic_complaint(setup.name) or names.is_system_topic(setup.name)
        )
        """Whether clients may name it: it is no system topic, and its name is legal."""
        self.of_lites = kind == message_types.LITE
        """Whether its messages are of lite topics."""
        self.of_priorities = kind == message_types.PRIORITY
        """Whether a message's priority is its queue; the highest is popped first."""
        self.message_type = kind if typed else message_types.MIXED
        """The type of messages that it takes; MIXED where that is not checked."""
        self.compacted = attributes.is_compacted(setup.attributes)
        """Whether messages need a key, and may have an empty body."""
        self.plain = (
            not self.compacted
            and not (self.of_lites or self.of_priorities)
            and self.writable
            and not retry
            and setup.name not in names.NOT_FOR_SENDING
            and self.message_type == message_types.MIXED
        )
        """Whether what is sent to it is stored, and nothing else done."""

    def queue_at(self, queue_id: int) -> int:
        """The queue for a message that was sent to one; another, where it has moved.

        For messages that waited, and were acknowledged to their senders meanwhile.
        """
        return queue_id % len(self.partitions)

    def begins(self) -> dict[str, int]:
        """The oldest offset of each queue; of those that are open, over a network."""
        found = {}
        for queue_id, partition in enumerate(self.partitions):
            with suppress(NotReadyError):
                found[str(queue_id)] = partition.first
        return found
