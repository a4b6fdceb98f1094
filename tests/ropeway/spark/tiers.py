"""Tiers for tests: segments of RocketMQ messages, made without a gateway."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ropeway.gateway.wire import message, properties
from ropeway.storage.tiered import segment
from ropeway.storage.tiered.compression import CODES, compress
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.providers import open_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.tiered.compression import Compression

TOPIC = "orders"
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
    return message.assemble(
        magic,
        name,
        queue_id,
        offset,
        offset,
        0,
        0,
        one.store_ms,
        HOST,
        one.store_ms,
        HOST,
        0,
        0,
        body,
        properties.dump(pairs).encode(),
        message.crc(body),
    )


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
    code = CODES[compression]
    identity = 0xABC00 + number if identity is None else identity

    def objects(first: int) -> dict[str, bytes]:
        some = sent[first : first + a_segment]
        records = [
            stored(one, queue_id, base + first + at) for at, one in enumerate(some)
        ]
        raw = b"".join(records)
        block = bytes(compress(code, raw))
        header = segment.data_header(base + first, identity, len(some), code)
        about = segment.About(
            topic=TOPIC,
            number=number,
            identity=identity,
            base_offset=base + first,
            records=len(some),
            least_ms=min(one.store_ms for one in some),
            most_ms=max(one.store_ms for one in some),
            written_ms=written_ms,
            data_bytes=len(header) + len(block),
            keys=0,
            compression=code,
        )
        index = segment.encode_index(
            about,
            [segment.Block(len(some), len(raw), len(block), crc32(block))],
            struct.pack(f"<{len(some)}q", *(one.store_ms for one in some)),
            struct.pack(f"<{len(some)}I", *map(len, records)),
            struct.pack(
                f"<{len(some)}i", *(properties.tag_hash(one.tag) for one in some)
            ),
        )
        name = SegmentName(TOPIC, number, identity, about.base_offset, about.end)
        return {name.object("data"): header + block, name.object("index"): index}

    async def main() -> None:
        provider = open_provider(url)
        try:
            for first in range(0, len(sent), a_segment):
                for name, data in objects(first).items():
                    await provider.put(name, [data])
        finally:
            await provider.close()

    asyncio.run(main())
