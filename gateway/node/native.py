"""Messages of topics that are shared with native clients: theirs to ours, and back.

    RocketMQ                          native
    body, inflated where it is zlib   payload
    properties                        properties, but for those that brokers add
    sharding key, or a word of KEYS   key
    born time                         event time
    born host, flag, compression      __BORNHOST, ROCKETMQ_FLAG, ROCKETMQ_COMPRESSION

A native message without KEYS or a sharding key has its key as KEYS, one without a
unique key gets the id of its place. What a native producer sets as TAGS or KEYS is the
tag and the keys.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

from ropeway.gateway.node import attributes
from ropeway.gateway.wire import host_port, message, message_id, properties
from ropeway.storage.api import Record
from ropeway.storage.native import NativeMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import RecordParts
    from ropeway.storage.native import NativePosition

FLAG = "ROCKETMQ_FLAG"
COMPRESSION = "ROCKETMQ_COMPRESSION"
"""The compression of a body that stays compressed: 1 LZ4, 2 Zstandard, 3 zlib."""

MAX_BODY_BYTES = 4 * 1024 * 1024
"""So long may the bodies of one entry become together when they are inflated: 10 ms.
One that would be longer stays compressed, or Pulsar would not take it."""

_ZLIB = frozenset({0, 3})
"""Source: CompressionType.findByValue, RocketMQ 5.3.4; 0 is from before 5.0."""
_COMPRESSIONS = {str(kind): kind for kind in range(4)}
_COMPRESSION_SHIFT = 8
_KEPT = (properties.UNIQ_KEY, properties.TAGS, properties.KEYS)
_PORT_MAX = 0xFFFF
_NOWHERE = message.pack_host("0.0.0.0", 0)  # noqa: S104 - says that nobody knows
_SEPARATORS = str.maketrans("", "", properties.NAME_END + properties.VALUE_END)
_topic_field = lru_cache(maxsize=1024)(message.topic_field)


class Native:
    """Converts messages of this broker's topics; neither way ever fails.

    Args:
        broker: Ours.
        routes: Say which queue a partition is.
        suffix: The properties in wire form that this broker adds to every message.
        store_host: Tells this broker's packed address, as clients reach it.
    """

    def __init__(
        self,
        broker: str,
        routes: RouteStore,
        suffix: str,
        store_host: Callable[[], bytes],
    ) -> None:
        self._broker = broker
        self._routes = routes
        self._suffix = suffix
        self._store_host = store_host

    def record(self, native: NativeMessage, place: NativePosition) -> RecordParts:
        """The record that a native message is for RocketMQ's clients."""
        pairs = _pairs(native, place.unique)
        born_host = _born_host(pairs.pop(properties.BORN_HOST, ""))
        flag = _number(pairs.pop(FLAG, ""))
        sys_flag = _compressed(pairs.pop(COMPRESSION, ""))
        store_host = self._store_host()
        magic, name_field = _topic_field(place.topic)
        front = message.Front(
            magic,
            message.crc(native.body),
            self._queue_id(place),
            flag,
            place.offset,
            message_id.base(place.number, retry=False) | place.offset,
            sys_flag | message.host_flags(born_host, store_host),
            native.event_ms,
            born_host,
            place.stored_ms,
            store_host,
            reconsume_times=0,
        )
        return Record(
            message.assemble(front, native.body, name_field, self._wire_form(pairs)),
            properties.tag_hash(pairs.get(properties.TAGS, "")),
            properties.key_words(pairs),
        )

    def _queue_id(self, place: NativePosition) -> int:
        setup = self._routes.topics.get(place.topic)
        numbers = setup.route.get(self._broker, []) if setup else []
        return numbers.index(place.number) if place.number in numbers else place.number

    def _is_compacted(self, topic: str) -> bool:
        setup = self._routes.topics.get(topic)
        return setup is not None and attributes.is_compacted(setup.attributes)

    def _wire_form(self, pairs: dict[str, str]) -> bytes:
        data = (properties.dump(pairs) + self._suffix).encode()
        if len(data) <= message.MAX_PROPERTIES_BYTES:
            return data
        room = message.MAX_PROPERTIES_BYTES - len(self._suffix.encode())
        return _fitting(pairs, room) + self._suffix.encode()

    def native(self, records: Sequence[bytes]) -> list[NativeMessage]:
        """What native clients see of records that are appended as one entry."""
        room = MAX_BODY_BYTES
        made = []
        for record in records:
            one = self._native(record, room)
            room = max(room - len(one.body), 0)
            made.append(one)
        return made

    def _native(self, record: bytes, room: int) -> NativeMessage:
        one = message.decode(record)
        pairs = properties.parse(one.properties.removesuffix(self._suffix))
        words = pairs.get(properties.KEYS, "").split()
        key = pairs.get(properties.SHARDING_KEY) or (words[0] if words else None)
        if self._is_compacted(one.topic):
            # The whole of it is what the topic is compacted by.
            key = pairs.get(properties.KEYS, "") or key
        pairs[properties.BORN_HOST] = host_port.join(*one.born_host)
        if one.flag:
            pairs[FLAG] = str(one.flag)
        body = one.body
        if one.sys_flag & message.COMPRESSED_FLAG:
            kind = (one.sys_flag & message.COMPRESSION_TYPE_MASK) >> _COMPRESSION_SHIFT
            inflated = _inflated(body, room) if kind in _ZLIB and room else None
            if inflated is None:
                pairs[COMPRESSION] = str(kind)
            else:
                body = inflated
        return NativeMessage(body, pairs, key, one.born_ms)


def _pairs(native: NativeMessage, unique: str) -> dict[str, str]:
    """A native message's properties as RocketMQ's clients see them."""
    pairs = _clean(native.properties)
    # Who pops the message would acknowledge by it whatever its sender chose.
    pairs.pop(properties.POP_CK, None)
    key = native.key
    if key and properties.SHARDING_KEY not in pairs:
        words = pairs.get(properties.KEYS, "").split()
        if not words:
            pairs[properties.KEYS] = key.translate(_SEPARATORS)
        elif key not in (words[0], pairs[properties.KEYS]):
            pairs[properties.SHARDING_KEY] = key.translate(_SEPARATORS)
    pairs.setdefault(properties.UNIQ_KEY, unique)
    return pairs


def _fitting(pairs: dict[str, str], room: int) -> bytes:
    """As many properties as there is room for, for native clients may have more."""
    wires = [
        (name not in _KEPT, len(wire), wire)
        for name, value in pairs.items()
        for wire in [properties.dump({name: value}).encode()]
    ]
    kept = []
    for _, size, wire in sorted(wires):
        room -= size
        if room < 0:
            break
        kept.append(wire)
    return b"".join(kept)


def _clean(given: Mapping[str, str]) -> dict[str, str]:
    """Without the two characters that RocketMQ's wire form ends names and values by."""
    text = "".join((*given, *given.values()))
    if properties.NAME_END not in text and properties.VALUE_END not in text:
        return dict(given)
    return {
        name.translate(_SEPARATORS): value.translate(_SEPARATORS)
        for name, value in given.items()
    }


def _born_host(text: str) -> bytes:
    is_short = len(text) <= properties.REMEMBERED_CHARACTERS
    return _packed(text) if is_short else _NOWHERE


@lru_cache(maxsize=4096)
def _packed(text: str) -> bytes:
    try:
        host, port = host_port.split(text)
        known = 0 <= port <= _PORT_MAX
        return message.pack_host(host, port) if known else _NOWHERE
    except ValueError:
        return _NOWHERE


def _number(text: str) -> int:
    """A 32-bit number; 0 for what is none, for any producer may have written it."""
    try:
        number = int(text or 0)
    except ValueError:
        return 0
    return number if -(1 << 31) <= number < 1 << 31 else 0


def _compressed(text: str) -> int:
    """The system flags of a body that stays compressed."""
    kind = _COMPRESSIONS.get(text)
    return 0 if kind is None else message.COMPRESSED_FLAG | kind << _COMPRESSION_SHIFT


def _inflated(body: bytes, room: int) -> bytes | None:
    """A body of zlib as it was before; None where it is none, or becomes too long."""
    inflating = zlib.decompressobj()
    try:
        inflated = inflating.decompress(body, room)
    except zlib.error:
        return None
    return inflated if inflating.eof else None
