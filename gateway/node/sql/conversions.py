"""Texts as numbers, as Java reads them, and numbers in Java's order.

Source: Integer.valueOf, Long.valueOf, Double.valueOf and Double.compareTo, Java 17.
"""

from __future__ import annotations

import math
import re

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_CHAR_MAX = "\uffff"
_BLANKS = bytes(range(0x21))

# No part can match in two ways, or a long text would be tried in all of them.
_PLAIN = re.compile(rb"[+-]?[0-9]+(?:\.[0-9]*)?")
_DOUBLE = re.compile(
    rb"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?"
    rb"|(0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
    rb")"
)


def to_int(text: bytes) -> int:
    """A whole number of 32 bits.

    Raises:
        ValueError: It is none.
    """
    value = int(text) if text.isdigit() else _whole(text)
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError
    return value


def to_long(text: bytes) -> int:
    """A whole number of 64 bits.

    Raises:
        ValueError: It is none.
    """
    value = int(text) if text.isdigit() else _whole(text)
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise ValueError
    return value


def _whole(text: bytes) -> int:
    digits = text.decode()
    sign = 1
    if digits[:1] in ("+", "-"):
        sign = -1 if digits[0] == "-" else 1
        digits = digits[1:]
    # Java takes the digits of all scripts, but looks at 16 bits at a time.
    if not digits.isdecimal() or max(digits) > _CHAR_MAX:
        raise ValueError
    return sign * int(digits)


def to_double(text: bytes) -> float:
    """A number with a fraction, an exponent, or neither.

    Raises:
        ValueError: It is none.
    """
    if _PLAIN.fullmatch(text):
        return float(text)
    stripped = text.strip(_BLANKS)
    found = _DOUBLE.fullmatch(stripped)
    if found is None:
        raise ValueError
    if found[1] is not None:
        return _hexadecimal(found[1].decode(), negative=stripped.startswith(b"-"))
    return float(stripped.rstrip(b"fFdD") if stripped[-1:] in b"fFdD" else stripped)


def to_place(text: bytes) -> float:
    """A number as it stands in order among finite ones that are not 0.

    Raises:
        ValueError: It is none.
    """
    value = to_double(text)
    return math.inf if math.isnan(value) else value


def _hexadecimal(text: str, *, negative: bool) -> float:
    try:
        value = float.fromhex(text)
    except OverflowError:
        value = math.inf
    return -value if negative else value


def to_boolean(text: bytes) -> bool:
    """Whether it says true, in any case; all else is false."""
    return text.lower() == b"true"


def compare_doubles(left: float, right: float) -> int:
    """Below, at or above 0: NaN is beyond all others, and -0.0 before 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        left, right = math.copysign(1, left), math.copysign(1, right)
        return (left > right) - (left < right)
    return math.isnan(left) - math.isnan(right)
