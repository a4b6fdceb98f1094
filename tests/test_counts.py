"""As many tests are collected as the table says: none vanishes unnoticed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.counts import COUNTED, differences

TABLE = Path(__file__).with_name("counts.toml")


def test_as_many_tests_are_collected_as_there_were(
    pytestconfig: pytest.Config,
) -> None:
    found = pytestconfig.stash.get(COUNTED, None)
    if found is None:
        pytest.skip("counts the tests of the whole tree, and this run has a part of it")
    wrong = differences(tomllib.loads(TABLE.read_text()), found)
    assert not wrong, "tests/counts.toml says otherwise:\n" + "\n".join(wrong)


def test_what_is_gone_is_named_and_what_is_new_is_allowed_for_a_while() -> None:
    table = {"tiers": {"quick": 1000, "go": 30, "cpp": 7}, "clients": {"Go": 5}}
    assert differences(table, {"tiers": {"quick": 1100, "go": 50, "cpp": 7}}) == []
    assert differences(table, {"tiers": {"quick": 1200, "go": 29}}) == [
        "[tiers] cpp: 0 of 7; 7 tests are gone",
        "[tiers] go: 29 of 30; 1 tests are gone",
        '[tiers] quick: write "quick" = 1200 for 1000',
    ]
    assert differences(table, {"clients": {"Go": 5, "Rust": 21}}) == [
        '[clients] Rust: write "Rust" = 21 for 0'
    ]
