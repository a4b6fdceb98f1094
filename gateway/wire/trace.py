"""Traces of messages, as clients write them to RMQ_SYS_TRACE_TOPIC.

A trace message's body is a text of records that end with 0x02, each with fields that
0x01 divides:

    Pub        time region group topic id tags keys host length cost type [offset-id] ok
    SubBefore  time region group request id retries keys
    SubAfter   request id cost ok keys code [time group]
    EndTransaction, Recall: time region group topic id ...

Source: TraceDataEncoder.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import NamedTuple

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"

_RECORD = "\x02"
_FIELD = "\x01"


class Step(NamedTuple):
    """One thing that a client did with a message."""

    kind: str
    """Pub, SubBefore, SubAfter, EndTransaction or Recall."""
    msg_id: str
    group: str = ""
    """Who did it; empty from clients that do not say so after consuming."""
    time_ms: int | None = None
    cost_ms: int | None = None
    ok: bool | None = None
    """None where it is only begun."""
    request: str = ""
    """What a SubBefore and its SubAfter have in common."""
    retries: int | None = None


def decode(body: bytes) -> list[Step]:
    """The records of a trace message; what is none of them is left out."""
    records = body.decode(errors="replace").split(_RECORD)
    steps = []
    for record in records:
        kind, *fields = record.split(_FIELD)
        read = _READERS.get(kind)
        if read is None:
            continue
        try:
            steps.append(read(kind, fields))
        except (IndexError, ValueError):
            # Anybody may send to that topic.
            continue
    return steps


def _pub(kind: str, fields: list[str]) -> Step:
    # Before 4.3.1 there was no offset id; since 5.0 a host may follow.
    ok = fields[12] if len(fields) > len(_OLD_PUB) else fields[11]
    return Step(
        kind,
        fields[4],
        group=fields[2],
        time_ms=int(fields[0]),
        cost_ms=int(fields[9]),
        ok=ok == "true",
    )


_OLD_PUB = range(12)


def _before(kind: str, fields: list[str]) -> Step:
    return Step(
        kind,
        fields[4],
        group=fields[2],
        time_ms=int(fields[0]),
        request=fields[3],
        retries=int(fields[5]),
    )


def _after(kind: str, fields: list[str]) -> Step:
    has_time = len(fields) > len(_OLD_AFTER)
    return Step(
        kind,
        fields[1],
        group=fields[7] if has_time else "",
        time_ms=int(fields[6]) if has_time else None,
        cost_ms=int(fields[2]),
        ok=fields[3] == "true",
        request=fields[0],
    )


_OLD_AFTER = range(7)


def _other(kind: str, fields: list[str]) -> Step:
    return Step(kind, fields[4], group=fields[2], time_ms=int(fields[0]))


_READERS = {
    "Pub": _pub,
    "SubBefore": _before,
    "SubAfter": _after,
    "EndTransaction": _other,
    "Recall": _other,
}
