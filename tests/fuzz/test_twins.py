"""Python's and the compiled form of each function take and refuse the same bytes.

Valid ones, damaged ones and garbage; what comes from a client, a disk or another server
is garbage sooner or later. `ROPEWAY_FUZZ_ROUNDS` and `ROPEWAY_SEED` as in `test_wire`.
"""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from importlib import import_module
from inspect import isbuiltin

import pytest

from ropeway.common.native import TABLES
from tests.chance import fixed_and_fresh
from tests.chance import seed as seed_of_run
from tests.compiler import needs_compiled_forms
from tests.fuzz.targets import TARGETS
from tests.fuzz.twins import (
    Refused,
    extensions,
    given_to,
    outcome,
)
from tests.fuzz.wire_targets import LEAVES_SOME

ROUNDS = 400 * int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))
NAMES = [(module, name) for module, functions in TARGETS.items() for name in functions]


@needs_compiled_forms
def test_every_function_with_a_compiled_form_has_pythons_and_is_fuzzed() -> None:
    assert TARGETS.keys() == TABLES.keys() == extensions().keys()
    for module, twins in TABLES.items():
        compiled = import_module(module)
        exported = {name for name, one in vars(compiled).items() if isbuiltin(one)}
        assert exported == twins.keys() == TARGETS[module].keys(), module
        for name, (_, form) in twins.items():
            assert form is getattr(compiled, name)


@needs_compiled_forms
@fixed_and_fresh
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_both_forms_take_and_refuse_the_same(module: str, name: str, seed: int) -> None:
    chance = random.Random(seed)
    target, (python, compiled) = TARGETS[module][name], TABLES[module][name]
    assert compiled is not None
    taken = 0
    given = [given_to(target, chance) for _ in range(2 * ROUNDS)]
    for data in [*target.seeds, *given]:
        expected = outcome(target, python, data)
        got = outcome(target, compiled, data)
        may_be_left = name in LEAVES_SOME and got is None
        assert may_be_left or got == expected, data.hex()
        taken += not isinstance(expected, Refused) and expected is not None
    assert taken, "every round was refused: the damage is too coarse to test much"


@needs_compiled_forms
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_compiled_form_keeps_nothing_of_what_it_was_given(
    module: str, name: str
) -> None:
    chance = random.Random(seed_of_run())
    target, (_, compiled) = TARGETS[module][name], TABLES[module][name]
    assert compiled is not None

    def kept() -> int:
        for _ in range(ROUNDS):
            outcome(target, compiled, given_to(target, chance))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        # An object of each round would be 13 KB every time. What Python keeps itself,
        # as the UTF-8 of texts of a letter, it keeps once.
        assert any(-kept() + kept() < 20 * ROUNDS for _ in range(3))
    finally:
        tracemalloc.stop()
