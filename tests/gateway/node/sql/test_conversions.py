"""Texts as numbers, as Java reads them."""

from __future__ import annotations

import math
import time

import pytest

from ropeway.gateway.node.sql.conversions import (
    compare_doubles,
    to_boolean,
    to_double,
    to_int,
    to_long,
    to_place,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("-12", -12),
        ("+12", 12),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("\u0663", 3),
    ],
)
def test_whole_numbers(text: str, value: int):
    assert to_int(text.encode()) == to_long(text.encode()) == value


@pytest.mark.parametrize(
    "text", ["", "+", "-", " 1", "1 ", "1_0", "1.0", "1e1", "--1", "x", "\U0001d7d8"]
)
def test_what_is_no_whole_number(text: str):
    for read in (to_int, to_long):
        with pytest.raises(ValueError):
            read(text.encode())


def test_whole_numbers_have_their_ranges():
    for text in (b"2147483648", b"-2147483649"):
        assert to_long(text) == int(text)
        with pytest.raises(ValueError):
            to_int(text)
    for text in (b"9223372036854775808", b"-9223372036854775809", b"9" * 5000):
        with pytest.raises(ValueError):
            to_long(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0),
        (" \t1.5\n", 1.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E-3d", 0.001),
        ("2f", 2.0),
        ("1e400", math.inf),
        ("-Infinity", -math.inf),
        ("0x1p3", 8.0),
        ("-0X.8P1D", -1.0),
        ("0x1p9999", math.inf),
    ],
)
def test_doubles(text: str, value: float):
    assert to_double(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "e5", "1e", "nan", "inf", "infinity", "1_0", "0x1", "1ff", "1 2"],
)
def test_what_is_no_double(text: str):
    with pytest.raises(ValueError):
        to_double(text.encode())


def test_a_long_text_is_not_tried_in_all_ways():
    text = b"1" * 32_000 + b"x"
    began = time.thread_time()
    with pytest.raises(ValueError):
        to_double(text)
    assert time.thread_time() - began < 0.5


def test_doubles_have_javas_order():
    nan = to_double(b"-NaN")
    order = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, nan]
    for left, one in enumerate(order):
        for right, other in enumerate(order):
            assert compare_doubles(one, other) == (left > right) - (left < right)


def test_what_is_no_number_stands_behind_all_that_are():
    assert [to_place(one) for one in (b"NaN", b"2.5", b"-Infinity")] == [
        *(math.inf, 2.5, -math.inf)
    ]


def test_only_true_is_true():
    assert [to_boolean(one) for one in (b"true", b"TrUe", b"1", b"yes", b"")] == [
        *(True, True, False, False, False)
    ]
