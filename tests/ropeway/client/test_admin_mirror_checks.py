"""Mirrors are compared with their sources: what is equal, missing, more, or differs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from ropeway.client import (
    Admin,
    Message,
    Producer,
    admin_groups,
    admin_offsets,
    admin_trims,
)
from ropeway.client.admin_mirror_checks import Followed, Verified, Verifier, difference
from ropeway.client.admin_mirrors import Mirror, pull
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.common.throttle import Throttle
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.commands.mirrors import MirrorMessages
from ropeway.gateway.wire.properties import dump
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_mirrors import copy_all, send, target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from ropeway.client.admin_mirrors import Pair

__all__ = ["target"]

UNLIMITED = Throttle(None, time.monotonic)


class Two:
    """A source with a topic of two queues, and a target."""

    def __init__(self, source: Admin, here: Admin, producer: Producer) -> None:
        self.source, self.here, self.producer = source, here, producer
        self.mirror = Mirror(source, here)

    async def verified(
        self, pairs: list[Pair], wait_s: float = 0, throttle: Throttle | None = None
    ) -> list[Verified]:
        """Compare one queue after the other."""
        verifier = Verifier(
            self.source, self.here, throttle or UNLIMITED, wait_s=wait_s
        )
        return [await verifier.verify(pair, lambda _: None) for pair in pairs]


@asynccontextmanager
async def two(source: str, target: str, topic: str) -> AsyncIterator[Two]:
    async with (
        Admin(source, config=PATIENT) as there,
        Admin(target, config=PATIENT) as here,
        Producer(source, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await there.create_topic(topic, 2)
        yield Two(there, here, producer)


def equal(count: int, **changes: Any) -> Verified:
    return Verified(count, 0, 0, 0, None, None)._replace(**changes)


@scenario
async def test_a_mirror_is_equal_and_one_that_is_behind_lacks_messages(
    name_server, topic, target
):
    async with two(name_server, target.name_server, topic) as both:
        pairs = await both.mirror.prepare(topic)
        assert await both.mirror.pairs(topic) == pairs
        assert await both.verified(pairs) == [equal(0), equal(0)]
        await send(both.producer, topic, 151, source=both.source)
        assert await both.verified(pairs) == [
            equal(0, missing=76),
            equal(0, missing=75),
        ]
        # Who is waited for, is compared when it has come.
        found, copied = await asyncio.gather(
            both.verified(pairs, wait_s=240), copy_all(both.mirror, pairs)
        )
        assert copied == 151
        assert found == [equal(76), equal(75)]
        await send(both.producer, topic, 1, source=both.source)
        assert await both.verified(pairs) == [equal(76, missing=1), equal(75)]


async def mirror_changed(both: Two, pair: Pair, offset: int, **changes: Any) -> None:
    """Mirror a queue whose message at an offset is another one."""
    data = b""
    found = await pull(both.source, pair.source, 0)
    for one in stored.split(found.data):
        message = stored.decode(one)
        if message.queue_offset == offset:
            message = structs.replace(message, body_crc=None, **changes)
        data += stored.encode(message)
    header = MirrorMessages(pair.target.topic, pair.target.queue_id)
    await both.here.ask_broker(pair.target.broker_name, header, data)


@scenario
async def test_the_first_message_that_differs_is_told(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with two(where, target.name_server, topic) as both:
        await send(both.producer, topic, 10)
        pairs = await both.mirror.prepare(topic)
        await mirror_changed(both, pairs[0], 3, body=b"other")
        await mirror_changed(both, pairs[1], 0, properties=dump({"TAGS": "x"}))
        assert await both.verified(pairs) == [
            equal(4, differing=1, offset=3, field="body"),
            equal(4, differing=1, offset=0, field="unique_key"),
        ]


@scenario
async def test_what_was_never_at_the_source_is_told(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with two(where, target.name_server, topic) as both:
        await send(both.producer, topic, 4)
        pairs = await both.mirror.prepare(topic)
        await copy_all(both.mirror, pairs)
        # The source has lost its messages, and got others.
        await both.source.delete_topic(topic)
        await both.source.create_topic(topic, 2)
        await send(both.producer, topic, 1)
        first, second = await both.verified(pairs)
        assert first[:4] == (0, 0, 1, 1)
        assert second == equal(0, extra=2)


class Trimming(Throttle):
    """Gives up a queue's oldest messages once some of them were compared."""

    def __init__(self, admin: Admin, topic: str, offset: int) -> None:
        super().__init__(None, time.monotonic)
        self._trim = admin, topic, offset

    async def take(self, count: int) -> None:
        """See `Throttle`."""
        del count
        admin, topic, offset = self._trim
        if (await admin.describe_topic(topic))[0].begin < offset:
            await admin_trims.trim(admin, topic, queue_id=0, offset=offset)


@scenario
async def test_what_one_side_gives_up_meanwhile_is_not_compared(
    ropeway_gateway, topic, target
):
    where = ropeway_gateway.name_server
    async with two(where, target.name_server, topic) as both:
        queue = (await both.producer.queues(topic))[0]
        for _ in range(80):
            await both.producer.send(Message(topic, b"x"), queue=queue)
        (pair, _) = pairs = await both.mirror.prepare(topic)
        await copy_all(both.mirror, pairs)
        (found,) = await both.verified(
            [pair], throttle=Trimming(both.source, topic, 70)
        )
        # A pull has 32 of them at most.
        assert 10 < found.equal < 80
        assert found == equal(found.equal)
        assert await both.verified([pair]) == [equal(10)]
        # What the target gave up is missing, as long as the source has it.
        (found,) = await both.verified([pair], throttle=Trimming(both.here, topic, 80))
        assert found == equal(10 - found.missing, missing=found.missing)
        assert await both.verified([pair]) == [equal(0, missing=10)]


@scenario
async def test_groups_go_on_at_the_same_offsets_or_are_told(
    name_server, topic, group, target
):
    async with two(name_server, target.name_server, topic) as both:
        await send(both.producer, topic, 6, source=both.source)
        pairs = await both.mirror.prepare(topic)
        await copy_all(both.mirror, pairs)
        for admin in (both.source, both.here):
            await admin_groups.create(admin, group, {})
        verifier = Verifier(both.source, both.here, UNLIMITED, wait_s=0)
        # It has read nothing there.
        assert await verifier.follows(group, pairs[0]) is None
        await admin_offsets.place(both.source, group, {pairs[0].source: 2})
        assert await verifier.follows(group, pairs[0]) == Followed(2, -1)
        assert await verifier.follows(group, pairs[1]) is None
        patient = Verifier(both.source, both.here, UNLIMITED, wait_s=240)
        found, _ = await asyncio.gather(
            patient.follows(group, pairs[0]), both.mirror.follow(group, pairs)
        )
        assert found == Followed(2, 2)
        await admin_offsets.place(both.here, group, {pairs[0].target: 3})
        assert await patient.follows(group, pairs[0]) == Followed(2, 3)


@scenario
async def test_what_is_no_mirror_is_refused(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with two(where, target.name_server, topic) as both:
        with pytest.raises(AdminError, match=f"topic {topic} is not at the target"):
            await both.mirror.pairs(topic)
        await both.here.create_topic(topic, 3)
        with pytest.raises(AdminError, match="3 queues at the target and 2"):
            await both.mirror.pairs(topic)
        with pytest.raises(TopicNotFoundError, match="nosuch"):
            await both.mirror.pairs("nosuch")


MESSAGE = stored.Message(
    topic="orders",
    queue_id=0,
    queue_offset=7,
    message_id=70,
    body=b"x",
    properties=dump({"UNIQ_KEY": "u", "TAGS": "t", "KEYS": "k", "colour": "blue"}),
)


def test_messages_at_other_places_are_the_same():
    other = structs.replace(
        MESSAGE,
        message_id=9,
        store_host=("::1", 10911),
        sys_flag=stored.STORE_HOST_V6_FLAG,
        properties=dump({"TAGS": "t", "colour": "blue", "KEYS": "k", "UNIQ_KEY": "u"}),
    )
    assert difference(MESSAGE, MESSAGE) is None
    assert difference(MESSAGE, other) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"body": b"y"}, "body"),
        ({"flag": 1}, "flag"),
        ({"born_ms": 1}, "born_ms"),
        ({"born_host": ("10.0.0.1", 1)}, "born_host"),
        ({"store_ms": 1}, "store_ms"),
        ({"reconsume_times": 1}, "reconsume_times"),
        ({"sys_flag": stored.COMPRESSED_FLAG}, "sys_flag"),
        ({"properties": dump({"UNIQ_KEY": "v"}), "body": b"y"}, "unique_key"),
        ({"properties": dump({"UNIQ_KEY": "u", "TAGS": "t"})}, "keys"),
        ({"properties": dump({"UNIQ_KEY": "u", "KEYS": "k"})}, "tags"),
        (
            {"properties": dump({"UNIQ_KEY": "u", "TAGS": "t", "KEYS": "k"})},
            "property colour",
        ),
    ],
)
def test_a_difference_has_the_name_of_its_field(changes, field):
    assert difference(MESSAGE, structs.replace(MESSAGE, **changes)) == field
