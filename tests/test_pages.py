"""Pages that name tests: each test that is named is there."""

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGES = ["pop.md", "grpc.md", "tiered.md", "compaction.md"]
_ROW = re.compile(r"^\| [^|]+ \| `([\w/]+\.py)` \| ([^|]+) \|$", re.MULTILINE)


@cache
def named_in(path: str) -> set[str]:
    """The tests of a file, as sentences."""
    found = re.findall(r"def test_(\w+)", (TESTS / path).read_text())
    return {name.replace("_", " ") for name in found}


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    rows = _ROW.findall((TESTS.parent / "docs" / page).read_text())
    assert rows
    missing = {
        f"{path}: {test}"
        for path, tests in rows
        for test in tests.split("; ")
        if test not in named_in(path)
    }
    assert not missing, f"{page} names tests that are not there: {missing}"
