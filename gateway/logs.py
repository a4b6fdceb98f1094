"""How a node writes its log: lines of key=value or of JSON, to stderr.

Source files say what happened by `structlog.get_logger`; nothing logs on the way of
a message.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

_FIRST = ["time", "level", "event"]

_logfmt = structlog.processors.LogfmtRenderer(key_order=_FIRST, bool_as_flag=False)


def configure(level: Level, form: Format, broker: str | None = None) -> None:
    """Send what every part logs to stderr.

    Args:
        level: What is less important is left out.
        form: `text` for people, `json` for collectors of logs.
        broker: What each line is to name, where several write to one place.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
    ]
    if broker is not None:
        shared.append(partial(_name_broker, broker))
    render = _text if form == "text" else _json
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # asyncio, and libraries, use the standard library's logging.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                render,
            ],
            foreign_pre_chain=shared,
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)


def _name_broker(broker: str, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event.setdefault("broker", broker)
    return event


def _text(logger: WrappedLogger, name: str, event: EventDict) -> str:
    """A line of key=value; a traceback stands below, as people read it."""
    traceback = event.pop("exception", None)
    line = str(_logfmt(logger, name, event))
    return line if traceback is None else f"{line}\n{traceback}"


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    ordered: dict[str, Any] = {key: event.pop(key) for key in _FIRST if key in event}
    return msgspec.json.encode({**ordered, **event}, enc_hook=str).decode()
