"""The checks find what is wrong on purpose, and cut it down to what one can read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.simulation import bugs
from tests.simulation.minimise import rules, smaller
from tests.simulation.plan import Fault, Plan, dumped, loaded, made
from tests.simulation.test_simulation import ROOT, TIMEOUT_S

FAILING = '{"seed":3,"load_s":3.0,"faults":[{"at_s":1.0,"kind":"power","for_s":0.2}]}'


def test_a_plan_is_read_as_it_was_printed() -> None:
    for seed in range(50):
        assert loaded(dumped(made(seed))) == made(seed)


def test_a_smaller_plan_does_less() -> None:
    plan = Plan(1, faults=(Fault(1.0, "kill"), Fault(2.0, "reset")))
    found = [*smaller(plan)]
    assert found[0].faults == ()
    assert {one.faults for one in found[1:3]} == {plan.faults[1:], plan.faults[:1]}
    assert any(one.producers == 0 for one in found)
    assert plan not in found


def test_rules_are_the_first_words_of_violations() -> None:
    assert rules(["pop: a comes", "pop: b comes", "durable: c"]) == {"pop", "durable"}


@pytest.mark.parametrize("name", bugs.ALL)
def test_what_a_seeded_bug_replaces_is_there(name: str) -> None:
    with bugs.ALL[name]() as replacement:
        assert replacement is not None


def failed(*options: str) -> str:
    """What the simulator prints of a node that forgets nobody who has left."""
    command = [sys.executable, "-m", "tests.simulation", "--plan", FAILING]
    done = subprocess.run(
        [*command, "--bug", "forget who has left", *options],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-4000:]
    assert "CHECK       left: " in done.stdout
    assert "python -m tests.simulation --plan " in done.stdout
    return done.stdout


@pytest.mark.slow
def test_a_bug_is_found_and_its_timeline_printed() -> None:
    assert "loses power" in failed()
