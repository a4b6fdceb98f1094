"""Tiers for tests: segments of RocketMQ messages, made without a gateway."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire import message, properties
from ropeway.storage.replication import ENTRY
from ropeway.storage.sealed.layout import ZSTD, Whose
from ropeway.storage.sealed.writer import BlockLimits, SegmentWriter
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.providers import open_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.sealed.compression import Compression

TOPIC = "orders"
ONE_BLOCK = BlockLimits(1 << 30, 1 << 30)
HOST = message.pack_host("127.0.0.1", 9876)


class Sent(NamedTuple):
    """A message."""

    body: str
    tag: str = ""
    key: str = ""
    store_ms: int = 1000


def stored(one: Sent, queue_id: int, offset: int, topic: str = TOPIC) -> bytes:
    """A message as brokers store it."""
    magic, name = message.topic_field(topic)
    body = one.body.encode()
    pairs = {properties.TAGS: one.tag, properties.KEYS: one.key}
    pairs = {key: value for key, value in pairs.items() if value}
    front = message.Front(
        magic,
        message.crc(body),
        queue_id,
        0,
        offset,
        offset,
        0,
        one.store_ms,
        HOST,
        one.store_ms,
        HOST,
        0,
    )
    return message.assemble(front, body, name, properties.dump(pairs).encode())


def make(
    url: str,
    sent: Sequence[Sent],
    *,
    base: int = 0,
    a_segment: int = 4,
    number: int = 7,
    queue_id: int = 1,
    identity: int | None = None,
    compression: Compression = "none",
    written_ms: int = 5000,
) -> None:
    """Put messages of one queue into a tier, so many in each segment, in one block."""
    flags = ZSTD if compression == "zstd" else 0
    identity = 0xABC00 + number if identity is None else identity
    whose = Whose(TOPIC, number, identity)

    def objects(first: int) -> dict[str, bytes]:
        some = sent[first : first + a_segment]
        writer = SegmentWriter(whose, flags, ONE_BLOCK, base + first)
        for at, one in enumerate(some):
            data = stored(one, queue_id, base + first + at)
            tag = properties.tag_hash(one.tag)
            writer.add(data, ENTRY.pack(0, len(data), tag, one.store_ms))
        data = b"".join(writer.cut(everything=True))
        about, index = writer.seal(written_ms)
        name = SegmentName(*whose, about.base_offset, about.end)
        return {name.object("data"): data, name.object("index"): index}

    async def main() -> None:
        provider = open_provider(url)
        try:
            for first in range(0, len(sent), a_segment):
                for name, data in objects(first).items():
                    await provider.put(name, [data])
        finally:
            await provider.close()

    asyncio.run(main())
