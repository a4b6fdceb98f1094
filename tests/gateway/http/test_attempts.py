"""Guessing is slow, and keeps nobody else out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ropeway.gateway.http import attempts as module
from ropeway.gateway.http.attempts import (
    FORGET_S,
    FREE,
    FREE_OF_ADDRESS,
    LONGEST_S,
    Attempts,
)
from ropeway.gateway.http.params import RefusedError

HERE, THERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def clock():
    return SimpleNamespace(now_s=0.0)


@pytest.fixture
def attempts(clock):
    return Attempts(lambda: clock.now_s)


def is_refused(attempts, name: str, address: str) -> bool:
    try:
        attempts.begin(name, address)
    except RefusedError as error:
        return (error.status, "try again in" in error.sentence) == (429, True)
    return False


def guesses_within(attempts, clock, seconds: int) -> int:
    """How many wrong attempts are looked at, by somebody who tries each second."""
    looked_at = 0
    for _ in range(seconds):
        looked_at += not is_refused(attempts, "alice", HERE)
        clock.now_s += 1
    return looked_at


def test_who_guesses_gets_a_guess_a_minute(attempts, clock):
    assert guesses_within(attempts, clock, 120) <= FREE + 8
    assert guesses_within(attempts, clock, 3600) <= 3600 / LONGEST_S


def test_many_attempts_at_once_are_not_one(attempts):
    assert sum(not is_refused(attempts, "alice", HERE) for _ in range(100)) == FREE


def test_a_stranger_locks_nobody_out_who_comes_from_elsewhere(attempts):
    for _ in range(100):
        is_refused(attempts, "alice", HERE)
    assert is_refused(attempts, "alice", HERE)
    assert not is_refused(attempts, "alice", THERE)
    assert not is_refused(attempts, "bob", HERE)


def test_many_names_from_one_address_are_slow_too(attempts, clock):
    looked_at = sum(
        not is_refused(attempts, f"user-{number}", HERE) for number in range(1000)
    )
    assert looked_at == FREE_OF_ADDRESS
    assert is_refused(attempts, "alice", HERE)
    assert not is_refused(attempts, "alice", THERE)
    clock.now_s += 1
    assert not is_refused(attempts, "alice", HERE)


def test_a_network_of_ipv6_is_one_address(attempts):
    for number in range(FREE):
        assert not is_refused(attempts, "alice", f"2001:db8::{number:x}")
    assert is_refused(attempts, "alice", "2001:db8::ffff:1")
    assert not is_refused(attempts, "alice", "2001:db8:0:1::1")


def test_who_gets_in_is_not_slowed_down_by_what_it_mistyped(attempts):
    for _ in range(20):
        for _ in range(FREE - 1):
            assert not is_refused(attempts, "alice", THERE)
            attempts.succeed("alice", THERE)


def test_an_account_of_ones_own_does_not_help_to_guess_anothers(attempts):
    looked_at = 0
    for number in range(200):
        looked_at += not is_refused(attempts, f"user-{number}", HERE)
        if not is_refused(attempts, "mallory", HERE):
            attempts.succeed("mallory", HERE)
    assert looked_at <= FREE_OF_ADDRESS


def test_wrong_attempts_are_forgotten_in_time(attempts, clock):
    for _ in range(FREE):
        is_refused(attempts, "alice", HERE)
    assert is_refused(attempts, "alice", HERE)
    clock.now_s += FORGET_S
    assert not is_refused(attempts, "alice", HERE)
    assert sum(not is_refused(attempts, "alice", HERE) for _ in range(9)) == FREE - 1


def test_what_is_remembered_is_bounded(attempts, monkeypatch):
    monkeypatch.setattr(module, "MOST", 50)
    for number in range(100):
        attempts.begin("x" * 10_000, f"10.0.0.{number}")
    assert len(attempts) == 50
