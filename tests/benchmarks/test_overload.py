"""The benchmark of overload runs; what it measures is nobody's business here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import overload

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_every_case_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(overload, "WARM_S", 0.1)
    monkeypatch.setattr(overload, "CALM_S", 0.2)
    rows = list(overload.table(0.1, str(tmp_path)))
    assert len({row[0] for row in rows}) == len(rows) == 11
    assert {len(row) for row in rows} == {len(overload.HEADINGS)}
    assert any(row[2] != "0" for row in rows)
