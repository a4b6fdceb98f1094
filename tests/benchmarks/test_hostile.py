"""Every attack, for half a second: nobody waits long, and all goes on.

The bounds are far above what is aimed at, which `python -m benchmarks.hostile` shows:
CPU time and memory do not depend on what else the machine does, but their worst case
in a few sends does, a little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import hostile

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.attacks import Attack

pytestmark = pytest.mark.slow

MOST_CPU_MS = 1500
MOST_MIB = 400


@pytest.mark.parametrize(
    ("attack", "by"),
    [
        pytest.param(attack, by, id=f"{attack.name}, {by}")
        for attack, by in hostile.chosen([])
    ],
)
def test_no_attack_stops_who_sends_a_message_now_and_then(
    tmp_path: Path, attack: Attack, by: str
):
    found = hostile.measure(attack, by, 0.5, tmp_path)
    assert found.cpu_ms
    assert found.cpu_ms[-1] < MOST_CPU_MS
    assert found.more_mib < MOST_MIB
    assert found.over_s < hostile.OVER_S, "sends are not accepted afterwards"
