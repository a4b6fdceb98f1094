"""A function has a compiled form where one was built, and Python's elsewhere."""

from __future__ import annotations

import math

import pytest

from ropeway.common import native
from ropeway.common.native import Forms


@pytest.fixture(autouse=True)
def none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "TABLES", {})


def floor(_value: float) -> int:
    return -1


def test_a_compiled_form_takes_pythons_place_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROPEWAY_PURE", raising=False)
    forms = Forms("math")
    assert not forms.is_pure
    assert forms(floor) is math.floor
    assert {"math": {"floor": (floor, math.floor)}} == native.TABLES


def test_without_one_or_where_it_is_not_wanted_python_does_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = Forms("no.such.module")
    assert missing.is_pure
    assert missing(floor) is floor
    monkeypatch.setenv("ROPEWAY_PURE", "1")
    unwanted = Forms("math")
    assert unwanted.is_pure
    assert unwanted(floor) is floor
