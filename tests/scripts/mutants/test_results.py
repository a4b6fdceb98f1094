"""Results are counted as they are, and equivalent mutants are there with a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripts.mutants import results
from scripts.mutants.operators import mutants
from tests.test_laws import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOCKS = "gateway/node/locks.py"


def row(number: int, status: str) -> dict[str, Any]:
    mutant = mutants(LOCKS, (ROOT / LOCKS).read_bytes())[number]
    return {
        "key": mutant.key,
        "core": "locks",
        "path": LOCKS,
        "line": mutant.line,
        "operator": mutant.operator,
        "status": status,
    }


def test_every_mutant_that_is_called_equivalent_is_still_made_and_has_a_reason():
    made: dict[str, set[tuple[str, str]]] = {}
    for (path, was, becomes), why in results.equivalent().items():
        if path not in made:
            found = mutants(path, (ROOT / path).read_bytes())
            made[path] = {(one.was, one.becomes) for one in found}
        assert (was, becomes) in made[path], (path, was)
        assert len(why) > 20


def test_the_last_result_of_a_mutant_counts(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    assert results.read(file) == {}
    lines = [row(0, "survived"), row(1, "unreached"), row(0, "killed")]
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    known = results.read(file)
    assert [one["status"] for one in known.values()] == ["killed", "unreached"]
    assert results.surviving(known.values()) == [lines[1]]


def test_equivalent_mutants_are_no_survivors(monkeypatch):
    one = row(0, "survived")
    path, _, was, becomes, _ = one["key"].split("\t")
    assert results.surviving([one]) == [one]
    monkeypatch.setattr(results, "equivalent", lambda: {(path, was, becomes): "why"})
    assert results.surviving([one]) == []
    assert results.table([one, row(1, "killed")]).splitlines()[-1] == (
        "| together | 2 | 1 | 1 | 0 | 0.0 % |"
    )


def test_figures_are_told_by_core():
    rows = [row(0, "survived"), row(1, "killed"), row(2, "timeout"), row(3, "crashed")]
    assert results.table(rows).splitlines()[2:] == [
        "| locks | 4 | 3 | 0 | 1 | 25.0 % |",
        "| together | 4 | 3 | 0 | 1 | 25.0 % |",
    ]


def test_results_of_lines_that_are_gone_do_not_count():
    gone = row(0, "killed") | {"key": f"{LOCKS}\tf\ta = b\tpass\t0"}
    assert results.current(ROOT, [gone, row(1, "killed")]) == [row(1, "killed")]


def test_a_survivor_is_told_with_its_place_and_its_diff():
    told = results.told(ROOT, row(0, "survived"))
    assert told.startswith(f"# locks {LOCKS}:")
    assert f"--- a/{LOCKS}" in told
