"""Cores name what is there, and the tests that are asked first."""

from __future__ import annotations

import pytest

from scripts.mutants.cores import CORES, distance
from tests.test_laws import ROOT


@pytest.mark.parametrize("name", CORES)
def test_a_core_names_sources_and_tests_that_are_there(name):
    core = CORES[name]
    assert core.files(ROOT)
    for path in [*core.sources, *core.tests, *core.wider]:
        assert (ROOT / path).exists(), path


def test_tests_of_the_path_law_are_nearest():
    source = "gateway/wire/frame.py"
    assert distance(source, "tests/gateway/wire/test_frame.py") == 0
    assert distance(source, "tests/gateway/wire/test_header.py") == 1
    assert distance(source, "tests/gateway/test_connection.py") == 2
    # A package may have one test file for all that is in it.
    source = "gateway/wire/commands/pop.py"
    assert distance(source, "tests/gateway/wire/test_commands.py") == 0
    assert distance(source, "tests/gateway/wire/test_frame.py") == 2
