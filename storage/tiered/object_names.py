"""Names of objects: which partition's records, from where to where, which part.

    <topic>/<number>-<identity>/<base>-<end>.<part>

Number in decimal digits, identity 16 hexadecimal ones, base and end 20 decimal ones, so
that names sort by offset. In the topic, other bytes than a-z, A-Z, 0-9, `_` and `-`
stand as `=` and two hexadecimal digits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import Whose

if TYPE_CHECKING:
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.sealed.verify import Part

PARTS: tuple[Part, ...] = ("data", "keys", "index")
"""In the order in which they are put; they are deleted the other way round."""

_PLAIN = re.compile(rb"[^a-zA-Z0-9_-]")
_QUOTED = re.compile(r"=([0-9A-F]{2})")
_NAME = re.compile(
    r"(?P<topic>[^/]+)/(?P<number>[0-9]{1,4})-(?P<identity>[0-9a-f]{16})/"
    r"(?P<base>[0-9]{20})-(?P<end>[0-9]{20})\.(?P<part>data|keys|index)\Z"
)


class SegmentName(NamedTuple):
    """Which records a segment has; the same for its three objects."""

    topic: str
    number: int
    identity: int
    base: int
    end: int

    def opened(self, data: bytes) -> Index:
        """The index that an object of that name has.

        Raises:
            SegmentError: It is not what was written, or is of another segment.
        """
        index = decode_index(data)
        index.check_name(Whose(*self[:3]), self.base, self.end)
        return index

    def object(self, part: Part) -> str:
        """The name of one of its objects."""
        where = partition_prefix(self.topic, self.number, self.identity)
        return f"{where}{self.base:020}-{self.end:020}.{part}"


def topic_prefix(topic: str) -> str:
    """What the names of all of a topic's objects begin with."""
    quoted = _PLAIN.sub(lambda found: b"=%02X" % found[0][0], topic.encode())
    return f"{quoted.decode()}/"


def partition_prefix(topic: str, number: int, identity: int) -> str:
    """What the names of all of a partition's objects begin with."""
    return f"{topic_prefix(topic)}{number}-{identity:016x}/"


def parse(name: str) -> tuple[SegmentName, Part] | None:
    """What a name says; None where it is not one of ours."""
    found = _NAME.match(name)
    if found is None:
        return None
    raw = _QUOTED.sub(lambda byte: chr(int(byte[1], 16)), found["topic"])
    try:
        topic = raw.encode("latin-1").decode()
    except UnicodeError:
        return None
    segment = SegmentName(
        topic,
        int(found["number"]),
        int(found["identity"], 16),
        int(found["base"]),
        int(found["end"]),
    )
    part = next(one for one in PARTS if one == found["part"])
    return segment, part
