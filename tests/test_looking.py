"""Every test looks at something: it asserts, expects an error, or a helper does."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tests.test_laws import files, tree

EXPECT = {"raises", "warns", "fail", "fnmatch_lines", "assert_outcomes"}
"""Functions of pytest, and of its pytester."""
BY_NOT_RAISING = {
    "test_damaged_frames_raise_wire_errors_alone",
    "test_fields_that_are_none_are_a_header_error_and_nothing_else",
    "test_garbage_raises_frame_errors_only",
    "test_garbage_raises_nothing_else",
    "test_newer_versions_are_taken",
    "test_no_bytes_are_too_odd",
}
"""Tests that pass when nothing is raised, as their names say."""


class Function(NamedTuple):
    """A function of the tests."""

    place: str
    name: str
    looks: bool
    """Whether it asserts or raises itself."""
    calls: set[str]


def functions() -> list[Function]:
    found = []
    for file in files("tests/*.py"):
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = list(ast.walk(node))
                looks = any(isinstance(one, ast.Assert | ast.Raise) for one in inside)
                calls = {
                    str(getattr(one.func, "attr", getattr(one.func, "id", "")))
                    for one in inside
                    if isinstance(one, ast.Call)
                }
                place = f"{file}:{node.lineno}"
                found.append(Function(place, node.name, looks, calls))
    return found


def test_every_test_looks_at_something() -> None:
    known = functions()
    helpers = [one for one in known if not one.name.startswith("test_")]
    looking = EXPECT | {one.name for one in helpers if one.looks}
    while more := {one.name for one in helpers if one.calls & looking} - looking:
        looking |= more
    blind = [
        one
        for one in known
        if one.name.startswith("test_") and not one.looks and not one.calls & looking
    ]
    assert not [one for one in blind if one.name not in BY_NOT_RAISING]
    needed = {one.name for one in blind}
    assert needed >= BY_NOT_RAISING, "an exception that is not needed"
