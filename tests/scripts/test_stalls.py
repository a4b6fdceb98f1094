"""What runs under `scripts/stalls` stands still, with what it has started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STALLS = Path(__file__).parents[2] / "scripts" / "stalls"
CODE = 3
ENDS_WHEN_STOPPED = f"""\
import signal, sys, time
signal.signal(signal.SIGCONT, lambda *_: sys.exit({CODE}))
time.sleep(600)
"""
PARENT = f"""\
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", {ENDS_WHEN_STOPPED!r}]).returncode)
"""


def test_children_are_stopped_and_go_on_and_the_exit_code_is_passed_on() -> None:
    done = subprocess.run(
        [
            *(sys.executable, STALLS, "--every", "0.5", "--most", "0.3", "--seed", "7"),
            *(sys.executable, "-c", PARENT),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    first, last = done.stdout.splitlines()
    assert done.returncode == CODE, done.stderr
    assert first == "stalls: --seed 7"
    assert int(last.rpartition(" ")[2]) > 0
