"""The messages that `ropeway produce` sends: an argument, files, the standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client.admin_messages import senders_own
from ropeway.gateway.cli import stdin
from ropeway.gateway.cli.failures import MisusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ropeway.client import Message

_STDIN = "-"


class Source(Struct, frozen=True, kw_only=True):
    """Where messages come from."""

    message: str | None
    files: tuple[str, ...]
    """Each is a message; `-` is all of the standard input."""
    delimiter: bytes | None
    key_delimiter: bytes | None
    """What stands between the key and the body of each message."""
    is_json: bool
    """Whether lines are objects as `ropeway consume --json` prints them."""

    def check(self) -> None:
        """Refuse what excludes each other.

        Raises:
            MisusedError: Two sources or two forms are given.
        """
        if self.message is not None and self.files:
            raise MisusedError("MESSAGE and --file are both given; allowed: one")
        if self.is_json and (self.delimiter or self.key_delimiter):
            raise MisusedError("--input json takes no --delimiter and --key-delimiter")
        is_whole = self.message is not None or self.files
        if is_whole and (self.is_json or self.delimiter):
            raise MisusedError("--delimiter and --input are for the standard input")

    async def bodies(self, at_once: int) -> AsyncIterator[list[bytes]]:
        """Read lists of so many messages as they are given.

        Raises:
            OSError: A file cannot be read.
        """
        if self.message is not None:
            yield [self.message.encode()]
        elif self.files:
            for file in self.files:
                yield [await _contents(file)]
        else:
            async for parts in stdin.parts(at_once, self.delimiter):
                yield parts

    def made(self, body: bytes, like: Message) -> Message:
        """Make the message of what was given.

        Args:
            body: What `bodies` read.
            like: What is the same for all messages.

        Raises:
            MisusedError: It has no key, or is no such JSON.
        """
        if self.is_json:
            return _from_json(body, like)
        keys = like.keys
        if self.key_delimiter:
            key, found, body = body.partition(self.key_delimiter)
            if not found:
                raise MisusedError(
                    f"{key[:80]!r} has no {self.key_delimiter!r}; allowed: a key, "
                    "this, and the body"
                )
            keys = (*keys, _text(key))
        return msgspec.structs.replace(like, body=body, keys=keys)


def of_one_queue(messages: Sequence[Message]) -> list[list[Message]]:
    """Divide messages into those that may be sent in one request, to one queue.

    Messages with one sharding key stay together, in their order.
    """
    found: dict[str | None, list[Message]] = {}
    for message in messages:
        found.setdefault(message.sharding_key, []).append(message)
    return list(found.values())


class _Line(Struct):
    body: str | None = None
    body_base64: bytes | None = None
    tag: str = ""
    keys: str = ""
    sharding_key: str = ""
    flag: int | None = None
    properties: dict[str, str] = {}


def _from_json(line: bytes, like: Message) -> Message:
    try:
        given = msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError as error:
        raise MisusedError(f"{line[:80]!r}: {error}") from error
    if (given.body is None) == (given.body_base64 is None):
        raise MisusedError(f"{line[:80]!r}: allowed: one of body and body_base64")
    body = given.body_base64 if given.body is None else given.body.encode()
    return msgspec.structs.replace(
        like,
        body=body,
        tags=given.tag or like.tags,
        keys=(*like.keys, *given.keys.split()),
        sharding_key=given.sharding_key or like.sharding_key,
        flag=like.flag if given.flag is None else given.flag,
        properties={**like.properties, **senders_own(given.properties)},
    )


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise MisusedError(f"key {key[:80]!r}; allowed: UTF-8") from error


async def _contents(file: str) -> bytes:
    return await stdin.everything() if file == _STDIN else _bytes(file)


def _bytes(file: str) -> bytes:
    return Path(file).read_bytes()
