"""Damages bytes at random, in the ways that hurt decoders of lengths and text.

Coverage guidance would bring little: the hard parts are decoded by compiled code that
it cannot see into. Real frames as seeds and these mutations reach every branch of ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 32767, -32768, 65535, 1 << 24, -(1 << 31))
"""Values that lengths and codes go wrong at."""

PIECES = (
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
    b"-1",
    b"1e400",
    b"9223372036854775808",
    b"2147483648",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x00",
    b"\x01",
    b"\x02",
    b"[" * 5000,
    b'{"a":' * 3000,
)
"""What text goes wrong at."""


def mutate(chance: random.Random, seed: bytes, others: Sequence[bytes]) -> bytes:
    """Damage a seed once to four times; `others` are what it may be crossed with."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 4)):
        chance.choice(_WAYS)(chance, data, others)
    return bytes(data)


Way = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def _at(chance: random.Random, data: bytearray) -> int:
    # Lengths and codes stand in front, so that is where to hit most.
    limit = len(data) if chance.random() < 0.5 else min(len(data), 100)
    return chance.randint(0, limit)


def _flip(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_at(chance, data) % len(data)] ^= 1 << chance.randint(0, 7)


def _number(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    size = chance.choice((1, 2, 4, 8))
    value = chance.choice(NUMBERS) & ((1 << 8 * size) - 1)
    at = _at(chance, data)
    data[at : at + size] = value.to_bytes(size, "big")


def _cut(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(chance, data)
    del data[at : at + chance.choice((1, 4, 20, len(data)))]


def _insert(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(chance, data)
    data[at:at] = chance.choice(PIECES)


def _overwrite(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    piece = chance.choice(PIECES)
    at = _at(chance, data)
    data[at : at + len(piece)] = piece


def _repeat(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(chance, data)
    part = data[at : at + chance.randint(1, 40)]
    data[at:at] = part * chance.randint(1, 5)


def _cross(chance: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = chance.choice(others)
    at = _at(chance, data)
    data[at:] = other[min(at, len(other)) :]


_WAYS: tuple[Way, ...] = (_flip, _number, _cut, _insert, _overwrite, _repeat, _cross)
