"""Spark's queries are exactly once, whatever of them is killed, whenever."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.system import killed_queries
from tests.system.killed_queries import Plan, place_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

SHORT = Plan(each_round=40, a_batch=20, wait_s=1.5, master="local-cluster[1,2,700]")


@pytest.mark.timeout(1800)
def test_each_row_is_there_once_whoever_is_killed(
    tmp_path: Path, spark_classes: str
) -> None:
    rounds: list[str] = []
    victims = killed_queries.VICTIMS
    with place_in(tmp_path, on_pulsar=False) as place:
        found = killed_queries.run(
            *(tmp_path, len(victims), random.Random(58), place, rounds.append),
            SHORT._replace(java=spark_classes),
        )
    assert found.is_right, (found, rounds)
    assert [line.split()[2] for line in rounds] == [*victims]
