"""What a request asks with: parameters, checked, and errors that say what to do.

A parameter that is unknown or wrong is answered with 400, and a sentence that says
which, what came and what is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from ropeway.gateway.wire.unreadable import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

MAX_TEXT = 300
"""Longest text: no topic, group, key or id is longer."""
_SHOWN = 80

T = TypeVar("T")


class RefusedError(Exception):
    """A request that is not carried out; its sentence is for people.

    Args:
        sentence: What came, and what is allowed.
        status: HTTP's.
    """

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


def decode_body(data: bytes, kind: type[T], allowed: str) -> T:
    """Decode a body in JSON.

    Args:
        data: As it came.
        kind: What it has to be.
        allowed: How one looks, for people.

    Raises:
        RefusedError: It is something else.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE:
        raise RefusedError(
            f"the body is not as it should be; allowed: {allowed}"
        ) from None


async def wanted_of(request: web.Request, kind: type[T], allowed: str) -> T:
    """Read what a change asks for: a body in JSON, and no parameters.

    Args:
        request: As it came.
        kind: What its body has to be.
        allowed: How one looks, for people.

    Raises:
        RefusedError: It is something else.
    """
    Params(request.query)
    return decode_body(await request.read(), kind, allowed)


class Params:
    """The parameters of one request; each is taken once, and then none may be left.

    Args:
        given: Those of the address.
        known: The names of all that are allowed.

    Raises:
        RefusedError: There is another one.
    """

    def __init__(self, given: Mapping[str, str], *known: str) -> None:
        self._given = given
        for name in given:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise RefusedError(
                    f"unknown parameter {name!r:.{_SHOWN}}; allowed: {allowed}"
                )

    def text(
        self, name: str, default: str | None = None, *, most: int = MAX_TEXT
    ) -> str:
        """A text; without a default there must be one."""
        value = self._given.get(name, "").strip()
        if len(value) > most:
            raise RefusedError(
                f"{name} has {len(value)} characters; allowed: up to {most}"
            )
        if not value:
            if default is None:
                raise RefusedError(f"{name} is missing")
            return default
        return value

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """One of some words, the first by default."""
        value = self._given.get(name) or allowed[0]
        if value not in allowed:
            raise RefusedError(
                f"{name} is {value!r:.{_SHOWN}}; allowed: {', '.join(allowed)}"
            )
        return value

    def number(
        self, name: str, default: int | None = None, *, least: int = 0, most: int
    ) -> int:
        """A whole number; without a default there must be one."""
        value = self._given.get(name, "")
        if not value and default is not None:
            return default
        # Other scripts have digits, too, and Python would take them.
        if not (value.isascii() and value.isdecimal() and len(value) < _MOST_DIGITS):
            raise _bad_number(name, value, least, most)
        number = int(value)
        if not least <= number <= most:
            raise _bad_number(name, value, least, most)
        return number


_MOST_DIGITS = 20


def _bad_number(name: str, value: str, least: int, most: int) -> RefusedError:
    return RefusedError(
        f"{name} is {value!r:.{_SHOWN}}; allowed: a whole number from {least} to {most}"
    )
