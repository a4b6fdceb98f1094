"""What tests build is built once, and had at once by whoever comes later."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests import builds
from tests.waiting import WAIT_S

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_is_there_is_had_while_others_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone's first Spark kept all that needed a JVM waiting for its classes."""
    monkeypatch.setenv("ROPEWAY_CACHE", str(tmp_path))
    made: list[Path] = []

    def built() -> Path:
        return builds.built("thing", [], "", made.append)

    target = built()
    with ThreadPoolExecutor(1) as pool, builds.alone(target.parent):
        assert pool.submit(built).result(WAIT_S) == target
    assert len(made) == 1
