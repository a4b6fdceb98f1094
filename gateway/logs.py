"""How a node writes its log: lines of key=value or of JSON, to stderr.

Source files say what happened by `structlog.get_logger`; nothing logs on the way of
a message.

What clients say comes into lines: names, client ids, why something was refused. So a
line has no control character, whatever it quotes, and lines of one kind are limited in
their rate: nobody forges a line, commands a terminal, or fills a disk by being refused.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import structlog

from ropeway.gateway.node.accounts import Bucket

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

_FIRST = ["time", "level", "event"]
_BURST = 100.0
"""Lines of one kind that may come at once: all that one incident has to say."""
_PER_S = 10.0
"""Lines of one kind, on average; some 200 MB a day at the most."""
_KINDS = 1000
"""Kinds that are counted; of more, the one that was seen first is begun anew."""

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_logfmt = structlog.processors.LogfmtRenderer(key_order=_FIRST, bool_as_flag=False)


def configure(level: Level, form: Format, broker: str | None = None) -> None:
    """Send what every part logs to stderr.

    Args:
        level: What is less important is left out.
        form: `text` for people, `json` for collectors of logs.
        broker: What each line is to name, where several write to one place.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    rate = _Rate()
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
    ]
    if broker is not None:
        shared.append(partial(_name_broker, broker))
    render = _text if form == "text" else _json
    structlog.configure(
        processors=[rate.limit, *shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # In one write each: workers of one broker share a place.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    # asyncio, and libraries, use the standard library's logging.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                render,
            ],
            foreign_pre_chain=[_left_out, *shared],
        )
    )
    handler.addFilter(rate.limit_record)
    logging.basicConfig(level=number, handlers=[handler], force=True)


class _Rate:
    """Limits how often lines of one kind come, and counts those that are left out.

    A kind is what a source file says, without what it says it of.
    """

    def __init__(self) -> None:
        self._kinds: dict[object, tuple[Bucket, int]] = {}
        """Lines that each may write yet, and how many it left out."""

    def _admit(self, kind: object) -> int | None:
        """How many were left out before this line; None where it is, too."""
        now_s = time.monotonic()
        known = self._kinds.get(kind)
        if known is None and len(self._kinds) >= _KINDS:
            del self._kinds[next(iter(self._kinds))]
        bucket, left_out = known or (Bucket(_PER_S, now_s, burst=_BURST), 0)
        is_admitted = bucket.try_take(now_s)
        self._kinds[kind] = bucket, 0 if is_admitted else left_out + 1
        return left_out if is_admitted else None

    def limit(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Drop a line of ours, or say how many of its kind were."""
        left_out = self._admit(event["event"])
        if left_out is None:
            raise structlog.DropEvent
        if left_out:
            # The audit log counts its own.
            event["left_out"] = event.get("left_out", 0) + left_out
        return event

    def limit_record(self, record: logging.LogRecord) -> bool:
        """Whether a line of a library is written."""
        left_out = self._admit((record.name, record.pathname, record.lineno))
        record.left_out = left_out
        return left_out is not None


def _left_out(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """What `limit_record` has counted."""
    if left_out := event["_record"].left_out:
        event["left_out"] = left_out
    return event


def _name_broker(broker: str, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event.setdefault("broker", broker)
    return event


def _text(logger: WrappedLogger, name: str, event: EventDict) -> str:
    """A line of key=value; a traceback stands below, indented: no line is forged."""
    traceback = event.pop("exception", None)
    below = [] if traceback is None else traceback.splitlines()
    line = _printable(str(_logfmt(logger, name, event)))
    return "\n".join([line, *(f"  {_printable(one)}" for one in below)])


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    ordered: dict[str, Any] = {key: event.pop(key) for key in _FIRST if key in event}
    # msgspec would fail at half of a surrogate pair, of which file names may have one.
    return _printable(_dumps({**ordered, **event}))


def _printable(line: str) -> str:
    """A line whose control characters, and what turns text round, are escaped."""
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in line)
