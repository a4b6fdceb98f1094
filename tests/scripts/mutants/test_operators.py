"""Mutants are small, whole, told apart, and made of behaviour alone."""

from __future__ import annotations

import pytest

from scripts.mutants.cores import CORES
from scripts.mutants.operators import mutants
from tests.test_laws import ROOT

FUNCTION = """
async def f(self, a, b=True):
    {}
"""


def texts(line: str) -> set[tuple[str, str]]:
    """The kinds of changes of a line in a function, and what it becomes."""
    found = mutants("a.py", FUNCTION.format(line).encode())
    return {(one.operator, one.becomes) for one in found if one.line > 2}


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("a = a < b", {("comparison", "a = (a <= b)"), ("comparison", "a = (a >= b)")}),
        ("a = a == b", {("comparison", "a = (a != b)")}),
        ("a = a is b", {("comparison", "a = (a is not b)")}),
        ("a = a in b", {("comparison", "a = (a not in b)")}),
        ("a = a and b", {("and/or", "a = (a or b)")}),
        ("a = not b", {("without not", "a = b")}),
        ("a = -b", {("without minus", "a = b")}),
        ("a = a + b", {("arithmetic", "a = (a - b)")}),
        ("a = a << b", {("arithmetic", "a = (a >> b)")}),
        ("a += b", {("arithmetic", "a -= b"), ("without statement", "pass")}),
        ("a = 7", {("constant", "a = 8"), ("constant", "a = 6")}),
        ("a = 0", {("constant", "a = 1")}),
        ("a = False", {("constant", "a = True")}),
        ("a = min(b)", {("min/max", "a = max(b)")}),
        ("a = b if a else b", {("negated condition", "a = b if not a else b")}),
        ("a = [c for c in b if c]", {("no filter", "a = [c for c in b if True]")}),
        ("self.a = b", {("without statement", "pass")}),
        ("self.a: int = b", {("without statement", "pass")}),
        ("self.a[b] = b", {("without statement", "pass")}),
        ("a(b)", {("without statement", "pass")}),
        ("await a(b)", {("without statement", "pass")}),
        ("raise a", {("without statement", "pass")}),
        ("del a", {("without statement", "pass")}),
        ("return", {("without statement", "pass")}),
        ("return a", {("returns None", "return None")}),
        ("a = b(c=a)", {("without keyword", "a = b()")}),
        ("a = b(**a)", set()),
    ],
)
def test_a_change_of_each_kind_is_made(line, changes):
    assert texts(line) == changes


def test_loops_are_emptied_and_left_otherwise():
    source = b"""
def f(a):
    while a:
        for b in a:
            if b:
                break
            continue
"""
    assert {(one.line, one.becomes) for one in mutants("a.py", source)} == {
        (3, "while False:"),
        (4, "for b in ():"),
        (5, "if not b:"),
        (6, "continue"),
        (7, "break"),
    }


@pytest.mark.parametrize(
    "line",
    [
        "assert a > 1",
        "log.warning(a, b=1)",
        "self._log.debug(a + b)",
        "a = f'{a + 1}'",
        "a: dict[int, 7]",
        "a = 'text'",
        "return None",
        "a = zip(a, b, strict=True)",
    ],
)
def test_what_no_behaviour_hangs_on_is_left_alone(line):
    assert texts(line) - {("without keyword", "a = zip(a, b)")} == set()


def test_sizes_and_times_of_a_module_are_not_counted_up():
    source = (
        b"_BYTES = 4096\n_WAIT_S = 2.0\n_SPACE = 8 << 20\nKey = int | None\nBITS = 3\n"
    )
    assert [one.becomes for one in mutants("a.py", source)] == [
        "_SPACE = (8 >> 20)",
        "BITS = 4",
        "BITS = 2",
    ]


def test_what_only_types_need_is_left_alone():
    source = b"if TYPE_CHECKING:\n    a = 1\n"
    assert mutants("a.py", source) == []


def test_changes_of_several_lines_and_bytes_that_are_no_ascii_stay_whole():
    source = (
        "def f(a):\n    return g(\n"
        "        'ä', a + 1,\n        b=(a\n           < 2),\n    )\n"
    )
    changed = {
        one.apply(source.encode()).decode() for one in mutants("a.py", source.encode())
    }
    assert source.replace("a + 1", "(a - 1)") in changed
    assert source.replace("a\n           < 2", "(a <= 2)") in changed
    assert "def f(a):\n    return None\n" in changed


def test_a_mutant_is_known_again_when_lines_are_put_in_above_it():
    source = b"def f(a):\n    return a + 1\n\n\ndef g(a):\n    return a + 1 + 1\n"
    before = [one.key for one in mutants("a.py", source)]
    after = [one.key for one in mutants("a.py", b"import os\n\n\n" + source)]
    assert before == after
    assert len(set(before)) == len(before)


def test_a_survivor_is_told_as_a_diff():
    source = b"def f(a):\n    return a + 1\n"
    mutant = next(
        one for one in mutants("f.py", source) if one.operator == "arithmetic"
    )
    assert mutant.diff(source).splitlines()[:2] == ["--- a/f.py", "+++ b/f.py"]
    assert "-    return a + 1\n+    return (a - 1)" in mutant.diff(source)


@pytest.mark.parametrize("core", ["locks", "pop", "wire"])
def test_every_mutant_of_a_core_is_python_and_has_a_name_of_its_own(core):
    keys = []
    for path in CORES[core].files(ROOT):
        source = (ROOT / path).read_bytes()
        found = mutants(path, source)
        keys += [one.key for one in found]
        for one in found[:: max(len(found) // 5, 1)]:
            compile(one.apply(source), path, "exec")
    assert keys
    assert len(set(keys)) == len(keys)
