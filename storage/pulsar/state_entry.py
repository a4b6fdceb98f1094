"""How facts lie in Pulsar: a batch of keyed messages an entry; no I/O here.

    entry     property "ropeway-state" = "1", the version
              property "ropeway-term", which differs each time that a node leads
              a batch of Pulsar's own
    message   partition key = the fact's key
              payload   "=" and the value in UTF-8        the fact
                        "-" and ms since 1970 in decimal  a mark: deleted then
                        nothing                           forget the mark, too

Pulsar's compaction keeps the last message of each key, in batches too, and drops a key
whose last payload is empty. A reader that was between the two then never hears of the
deletion; so a key is first marked, which compaction keeps, and forgotten days later.
STATE_FORMAT.md has every byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ropeway.storage.pulsar.errors import EntryError, WireError
from ropeway.storage.pulsar.frames import SIZE
from ropeway.storage.pulsar.protobuf import LENGTH, VARINT, key, varint

if TYPE_CHECKING:
    from ropeway.storage.pulsar.entry import Entry

PROPERTY = "ropeway-state"
VERSION = "1"
TERM = "ropeway-term"
LEADER = "/leader"
"""The key of the record that says who leads; no fact's key may begin with its slash."""
MAX_FACT_BYTES = 64 * 1024
"""A key and its value: facts are small, and one entry takes several."""
ENTRY_BYTES = 256 * 1024
"""An entry is full then: far below what a broker takes, and a read brings several."""

FACT, MARK = b"=", b"-"
PARTITION_KEY, PAYLOAD_SIZE = key(2, LENGTH), key(3, VARINT)
"""Of `SingleMessageMetadata`; `entry.BatchedMetadata` reads them."""

Change = str | int | None
"""A value; or when, in ms since 1970, it was deleted; or None: as if it never was."""
Changes = Mapping[str, Change]


class Leader(msgspec.Struct, frozen=True):
    """Who leads, or led last."""

    node: str
    term: str
    lease_s: float
    """For so long after it last asked it may hold itself for the leader."""
    ended: bool = False
    """It has said itself that it leads no more."""


def encode(changes: Changes) -> Iterator[tuple[dict[str, Change], bytes]]:
    """Changes, cut into what one entry takes, each with its payload."""
    part: dict[str, Change] = {}
    out: list[bytes] = []
    size = 0
    for name, change in changes.items():
        payload = _payload(change)
        encoded = name.encode()
        head = b"".join(
            (
                *(PARTITION_KEY, varint(len(encoded)), encoded),
                *(PAYLOAD_SIZE, varint(len(payload))),
            )
        )
        out += SIZE.pack(len(head)), head, payload
        part[name] = change
        size += SIZE.size + len(head) + len(payload)
        if size >= ENTRY_BYTES:
            yield part, b"".join(out)
            part, out, size = {}, [], 0
    if part:
        yield part, b"".join(out)


def decode(entry: Entry) -> dict[str, Change]:
    """The changes of an entry, as far as compaction left them.

    Raises:
        EntryError: it is damaged, foreign, or of another version.
    """
    try:
        version = entry.properties.get(PROPERTY)
    except WireError as error:
        raise EntryError(f"properties that are damaged: {error}") from error
    if version != VERSION:
        came = "none" if version is None else repr(version)
        raise EntryError(f"{PROPERTY} is {came}; allowed: {VERSION!r}")
    changes: dict[str, Change] = {}
    for metadata, payload in entry.messages():
        name = metadata.partition_key
        if name is None:
            raise EntryError("a message without a key")
        changes[name] = _change(name, bytes(payload))
    return changes


def decode_leader(text: str) -> Leader:
    """What stands under `LEADER`.

    Raises:
        EntryError: it is no such record.
    """
    try:
        return msgspec.json.decode(text, type=Leader)
    except msgspec.DecodeError as error:
        raise EntryError(f"the record of the leader: {error}") from error


def encode_leader(leader: Leader) -> str:
    """As it stands under `LEADER`."""
    return msgspec.json.encode(leader).decode()


def _payload(change: Change) -> bytes:
    if type(change) is str:
        return FACT + change.encode()
    return b"" if change is None else MARK + str(change).encode()


def _change(name: str, payload: bytes) -> Change:
    kind = payload[:1]
    try:
        if kind == FACT:
            return payload[1:].decode()
        if kind == MARK:
            return int(payload[1:])
    except ValueError as error:
        raise EntryError(f"the value of key {name!r}: {error}") from error
    if payload:
        raise EntryError(f"a value of kind {kind!r}; allowed: {FACT!r}, {MARK!r}")
    return None
