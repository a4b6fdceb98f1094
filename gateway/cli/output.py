"""What commands print: tables for people, JSON for scripts, messages."""

from __future__ import annotations

import base64
import sys
from contextlib import contextmanager
from string import Formatter
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import UNSET, Struct

from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.rows.messages import MessageRow
from ropeway.gateway.cli.tables import print_table
from ropeway.gateway.cli.times import time_text
from ropeway.gateway.wire.properties import SHARDING_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ropeway.client import ReceivedMessage


def print_json(value: object) -> None:
    """Print one line of JSON."""
    click.echo(msgspec.json.encode(value).decode())


def print_rows(rows: Sequence[Struct], *, as_json: bool) -> None:
    """Print rows with the same members: aligned columns under their names, or JSON."""
    if as_json:
        print_json(rows)
        return
    print_table([members(row) for row in rows])


def members(row: Struct) -> dict[str, Any]:
    """The members of a row by their names in JSON; those that are unset are left out.

    For people, lists and tables are words.
    """
    found: dict[str, Any] = msgspec.to_builtins(row)
    return {name: _words(value) for name, value in found.items()}


def _words(value: Any) -> Any:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else value


def print_facts(facts: Mapping[str, Any] | Struct, *, as_json: bool) -> None:
    """Print the facts about one thing: a line each, or a JSON object."""
    if as_json:
        print_json(facts)
        return
    if isinstance(facts, Struct):
        facts = members(facts)
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"{name.ljust(width)}  {value}".rstrip())


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show how far long work is, on the standard error if that is a terminal.

    Args:
        what: The work.
        total: How many steps it has, where that is known.

    Returns:
        What to call after each step.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


_FACTS: dict[str, Callable[[ReceivedMessage], Any]] = {
    "topic": lambda message: message.topic,
    "broker": lambda message: message.queue.broker_name,
    "queue_id": lambda message: message.queue.queue_id,
    "offset": lambda message: message.queue_offset,
    "tag": lambda message: message.tags or "",
    "keys": lambda message: " ".join(message.keys),
    "sharding_key": lambda message: message.properties.get(SHARDING_KEY, ""),
    "flag": lambda message: message.flag,
    "msg_id": lambda message: message.msg_id,
    "offset_msg_id": lambda message: message.offset_msg_id,
    "born_ms": lambda message: message.born_ms,
    "store_ms": lambda message: message.store_ms,
    "store_time": lambda message: time_text(message.store_ms),
    "reconsume_times": lambda message: message.reconsume_times,
    "body": lambda message: message.body.decode(errors="backslashreplace"),
}

FORMAT_NAMES = " ".join(_FACTS)
"""What `--format` knows."""


def message_row(message: ReceivedMessage) -> dict[str, Any]:
    """A message's facts by the names that `--format` knows."""
    return {name: fact(message) for name, fact in _FACTS.items()}


def print_message(message: ReceivedMessage, template: str, *, as_json: bool) -> None:
    """Print a message by a template like `{offset} {body}`, or as a line of JSON.

    A terminal gets escapes for what is no text, and a pipe the body's own bytes.
    """
    if as_json:
        print_json(whole(message))
        return
    row = message_row(message)
    if not sys.stdout.isatty():
        row["body"] = message.body.decode(errors="surrogateescape")
    click.echo(formatted(template, row).encode(errors="surrogateescape"))


def whole(message: ReceivedMessage) -> MessageRow:
    """All of a message; its body in base64 where it is no text."""
    row = message_row(message)
    try:
        message.body.decode()
    except UnicodeDecodeError:
        encoded = base64.b64encode(message.body).decode()
        row |= {"body": UNSET, "body_base64": encoded}
    return MessageRow(**row, properties=message.properties)


def known_template(
    _: click.Context, __: click.Parameter, template: str | None
) -> str | None:
    """Take a template that names only what messages have: a callback for options.

    Raises:
        MisusedError: It names what no message has, also where no message comes.
    """
    if template is None:
        return None
    try:
        names = {name for _, name, _, _ in Formatter().parse(template)} - {None}
    except ValueError as error:
        raise _unknown(template) from error
    if not names <= _FACTS.keys():
        raise _unknown(template)
    return template


def _unknown(template: str) -> MisusedError:
    return MisusedError(f"--format is {template!r}; allowed in braces: {FORMAT_NAMES}")


def formatted(template: str, row: dict[str, Any]) -> str:
    """Fill a template in.

    Raises:
        MisusedError: It names what no message has.
    """
    try:
        return template.format_map(row)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise _unknown(template) from error
