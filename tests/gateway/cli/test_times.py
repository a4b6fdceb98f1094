"""Moments on the command line."""

import time

import click
import pytest

from ropeway.gateway.cli.times import Seconds, duration_ms, past_ms, time_ms, time_text


def test_a_moment_is_a_number_or_a_time():
    assert time_ms("1800000000000") == 1_800_000_000_000
    assert time_ms("2027-01-15T08:00:00Z") == 1_800_000_000_000
    assert time_ms("2027-01-15T10:00:00+02:00") == 1_800_000_000_000
    assert time_ms(time_text(1_800_000_000_123)) == 1_800_000_000_123
    with pytest.raises(click.BadParameter, match="'soon'; allowed: now, milliseconds"):
        time_ms("soon", "now, ")


def test_a_moment_that_no_calendar_has_is_a_number():
    assert time_text(10**18) == str(10**18)


def test_a_duration_is_a_number_and_a_unit():
    lengths = [duration_ms(text) for text in ("90s", "15m", "2h", "7d")]
    assert lengths == [90_000, 900_000, 7_200_000, 604_800_000]
    for odd in ("", "5", "h", "1.5h", "-1h", "5 h", "5w"):
        with pytest.raises(click.BadParameter, match="like 15m"):
            duration_ms(odd)


def test_a_moment_may_be_said_by_how_long_ago_it_is():
    assert past_ms("1800000000000") == 1_800_000_000_000
    before = time.time() * 1000
    assert before - 600_001 <= past_ms("10m") <= time.time() * 1000 - 600_000
    with pytest.raises(click.BadParameter, match="allowed: first, how long ago, like"):
        past_ms("soon", "first, ")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("0.5", 0.5), ("1h", 3600), ("0s", 0)]
)
def test_an_option_of_seconds_takes_units(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    ("kind", "limit", "odd"),
    [
        (Seconds(), "at least 0", ["-1", "nan", "inf", "1h30", "soon", "", "h"]),
        (Seconds(is_open=True), "more than 0", ["0", "0s", "-0.1"]),
        (Seconds(0.1), "at least 0.1", ["0.01"]),
    ],
)
def test_an_option_of_seconds_says_what_it_takes(
    kind: Seconds, limit: str, odd: list[str]
) -> None:
    for text in odd:
        with pytest.raises(
            click.BadParameter, match=f"'{text}'; allowed: seconds, {limit},"
        ):
            kind.convert(text, None, None)
