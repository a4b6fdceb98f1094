"""A user without rights runs a node: no root, no /proc, nothing but its own folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.system.process import START_SECONDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SHUT = 'mount -t tmpfs -o mode=0755 tmpfs /proc && exec setpriv "$@"'


def as_nobody(*command: str) -> list[str]:
    """A command line that has no rights and sees no /proc."""
    ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    drop = ["--bounding-set=-all", "--no-new-privs", *ids]
    return ["unshare", "--mount", "sh", "-c", SHUT, "sh", *drop, *command]


def reaches_python() -> bool:
    """Whether a user without rights may run this Python and read this folder."""
    if os.getuid() != 0:
        return False
    tried = subprocess.run(
        as_nobody(sys.executable, "-c", "import ropeway.gateway"),
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    return tried.returncode == 0


@pytest.mark.skipif(
    not reaches_python(), reason="only root can become nobody, who must reach Python"
)
def test_a_user_without_rights_sends_and_receives() -> None:
    # Others may not look into pytest's own folders.
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            as_nobody(sys.executable, "-m", "ropeway.gateway.cli.main", "demo"),
            cwd=home,
            env={"PYTHONPATH": str(ROOT), "TMPDIR": home, "PATH": os.environ["PATH"]},
            check=False,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
    assert done.returncode == 0, done.stderr
    assert "received: 'hello from Ropeway'" in done.stdout
    assert "Traceback" not in done.stderr
