"""Sequence ids: whose term an entry is of, and the next offset after it. No I/O here.

     62              44 43                                   0
    +------------------+--------------------------------------+
    | term             | 0, or 1 + the next offset            |
    +------------------+--------------------------------------+

Pulsar's deduplication refuses whatever is not above all that it has of a producer's
name. So an owner's first entry, the only one with 0 below its term, is stored once for
each term and by one owner only; and from then on nothing of an older term is stored.
"""

from __future__ import annotations

OFFSET_BITS = 44
TERM_BITS = 19

LAST_OFFSET = (1 << OFFSET_BITS) - 3
"""The largest offset of a record in this log: 17 million million."""
LAST_TERM = (1 << TERM_BITS) - 1
"""How often a partition can be taken over; once a minute, that is a year."""

_LOW = (1 << OFFSET_BITS) - 1


def claiming(term: int) -> int:
    """The sequence id of the entry that begins a term."""
    return term << OFFSET_BITS


def after(term: int, next_offset: int) -> int:
    """The sequence id of an entry behind which `next_offset` is the next one."""
    return (term << OFFSET_BITS) + 1 + next_offset


def term_of(sequence_id: int) -> int:
    """The term of an entry; -1 where there is none, whose id is -1."""
    return sequence_id >> OFFSET_BITS


def next_offset_of(sequence_id: int) -> int | None:
    """The next offset after an entry; None where its id does not tell."""
    low = sequence_id & _LOW
    return low - 1 if sequence_id >= 0 and low else None
