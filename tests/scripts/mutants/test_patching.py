"""What lives behaves as the changed text says, or it is said that it cannot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from scripts.mutants.patching import functions_of, lines_of, patch

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = b"""
def wrap(function):
    def inner(a):
        return function(a) + 10
    return inner

def plain(a):
    return a + 1

@wrap
def decorated(a):
    return a + 2

class Thing:
    def method(self, a):
        return [a + b for b in (3,)][0]

    @property
    def four(self):
        return 4

LIMIT = 5
"""


@pytest.fixture
def alive(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """A module that was imported, with its path."""
    file = tmp_path / "module.py"
    file.write_bytes(SOURCE)
    names: dict[str, Any] = {}
    exec(compile(SOURCE, str(file), "exec"), names)
    return str(file), names


@pytest.mark.parametrize(
    ("was", "becomes", "look", "before", "after"),
    [
        (b"a + 1", b"a - 1", lambda m: m["plain"](1), 2, 0),
        (b"a + 2", b"a - 2", lambda m: m["decorated"](1), 13, 9),
        (b"(a) + 10", b"(a) - 10", lambda m: m["decorated"](1), 13, -7),
        (b"a + b", b"a - b", lambda m: m["Thing"]().method(1), 4, -2),
        (b"return 4", b"return 5", lambda m: m["Thing"]().four, 4, 5),
    ],
)
def test_functions_that_live_are_changed(alive, was, becomes, look, before, after):
    path, module = alive
    assert look(module) == before
    assert patch(path, SOURCE, SOURCE.replace(was, becomes), functions_of(path))
    assert look(module) == after


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b"LIMIT = 5", b"LIMIT = 6"),
        (b"return function(a) + 10", b"return None"),
    ],
    ids=["a constant", "a closure"],
)
def test_what_needs_a_new_import_is_said_to(alive, was, becomes):
    path, module = alive
    functions = functions_of(path)
    module["decorated"](1)
    changed = SOURCE.replace(was, becomes)
    inner = [
        one for name, found in functions.items() if "inner" in name[0] for one in found
    ]
    patched = patch(path, SOURCE, changed, functions)
    assert not patched
    assert module["LIMIT"] == 5
    assert all(one.__code__.co_freevars for one in inner)


def test_functions_of_other_files_are_left_alone(alive):
    path, _ = alive
    assert functions_of(sys.modules[patch.__module__].__file__ or "").keys() >= {
        ("patch", patch.__code__.co_firstlineno)
    }
    assert {name for name, _ in functions_of(path)} >= {"plain", "Thing.method"}


def test_the_lines_of_all_that_is_in_a_text_are_known():
    assert lines_of(
        compile(
            b"a = 1\ndef f():\n\n    return [\n        b for b in a]\n", "x", "exec"
        )
    ) >= {*(1, 2, 4, 5)}
