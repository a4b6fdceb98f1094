"""Pages that name tests and functions: each one that is named is there."""

import ast
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


_STEP = re.compile(
    r"^\| \d+ \| `([\w/]+\.py)` \| `([\w.]+)` \| [^|]+ \|$", re.MULTILINE
)


def defined_in(path: str) -> set[str]:
    """The functions, classes and methods of a file, as `Class.method`."""
    names = set()
    for one in ast.parse((TESTS.parent / path).read_text()).body:
        if isinstance(one, ast.ClassDef):
            inner = (getattr(child, "name", "") for child in one.body)
            names |= {one.name, *(f"{one.name}.{name}" for name in inner)}
        else:
            names.add(getattr(one, "name", ""))
    return names


def test_every_step_of_a_messages_life_is_where_the_page_says() -> None:
    page = TESTS.parent / "docs" / "architecture" / "message-life.md"
    steps = _STEP.findall(page.read_text())
    assert len(steps) > 40
    missing = [
        f"{path}: {name}" for path, name in steps if name not in defined_in(path)
    ]
    assert not missing, missing
