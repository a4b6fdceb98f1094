"""A job on Spark is exactly once, whatever of it is killed, whenever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system import killed_job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.jvm,
    pytest.mark.usefixtures("spark_classes"),
]

ROUNDS = 4


@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    rounds: list[str] = []
    assert not killed_job.run(tmp_path, ROUNDS, seed=58, show=rounds.append)
    assert [line.split()[2] for line in rounds[:3]] == [*killed_job.VICTIMS]
    assert len(rounds) == ROUNDS


@pytest.mark.timeout(1800)
def test_a_mirrored_job_is_exactly_once_without_its_checkpoint(tmp_path: Path) -> None:
    rounds: list[str] = []
    wrong = killed_job.run(tmp_path, 1, seed=58, show=rounds.append, is_mirrored=True)
    assert not wrong
    assert rounds[0].startswith("round 1: driver ")
