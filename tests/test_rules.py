"""Rules that tests name are on their pages, and tests that the docs name are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests import rules

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
SENTENCE = "A request gets exactly one answer, unless it is one-way."
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def section() -> str:
    """What docs/testing.md says of rules and changes."""
    text = (ROOT / "docs" / "testing.md").read_text()
    return text.partition("\n## Rules of the architecture")[2].partition("\n## ")[0]


@cache
def rules_by_test(path: str) -> dict[str, list[tuple[str, str]]]:
    """The tests of a file, each with its rules as page and sentence."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = [
                tuple(ast.literal_eval(argument) for argument in one.args)
                for one in node.decorator_list
                if isinstance(one, ast.Call)
                if ast.unparse(one.func) == "pytest.mark.rule"
            ]
    return found


def marked() -> dict[str, list[tuple[str, str]]]:
    """Every test that is for rules."""
    return {
        f"{path.relative_to(ROOT)}::{test}": marks
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.rule(" in path.read_text()
        for test, marks in rules_by_test(str(path.relative_to(ROOT))).items()
        if marks
    }


def test_every_rule_stands_on_its_page() -> None:
    found = [rules.named(*mark) for marks in marked().values() for mark in marks]
    for number in range(2, 8):
        assert any(one.startswith(f"law {number} of docs/") for one in found), number


def test_a_rule_that_no_page_has_is_a_mistake() -> None:
    assert rules.named("README.md", SENTENCE).startswith("law 5 of docs/architecture/")
    with pytest.raises(ValueError, match=r"node\.md does not say: Nodes are blue"):
        rules.named("node.md", "Nodes are blue.")


def test_every_test_that_the_docs_name_is_there() -> None:
    named = _NAMED.findall((ROOT / "docs" / "testing.md").read_text())
    assert named
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).is_file() or (test and test not in rules_by_test(path))
    ]
    assert not missing, f"docs/testing.md names tests that are not there: {missing}"


def test_the_docs_name_every_test_that_is_for_a_rule() -> None:
    named = {f"{path}::{test}" for path, test in _NAMED.findall(section())}
    assert set(marked()) <= named, set(marked()) - named


def test_a_test_that_fails_names_its_rule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.rule("README.md", "{SENTENCE}")
        def test_fails():
            assert False

        @pytest.mark.rule("README.md", "{SENTENCE}")
        def test_passes():
            pass
        """
    )
    done = pytester.runpytest_inprocess("-p", "tests.rules", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    text = done.stdout.str()
    assert text.count("this rule is broken") == 1
    assert f"law 5 of docs/architecture/README.md: {SENTENCE[:-1]}" in text
