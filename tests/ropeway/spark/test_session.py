"""What a session is given; how one starts is shown by all tests that have one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from ropeway.spark import session

CODE = """
import os
from ropeway.spark import session
session._use_installed_modules()
home = os.environ['SPARK_HOME']
print(sorted(os.listdir(home)), os.path.realpath(home + '/jars'), home)
"""


def test_workers_import_pyspark_as_it_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={name: at for name, at in os.environ.items() if name != "SPARK_HOME"},
        check=True,
        capture_output=True,
        text=True,
    )
    jars = Path(pyspark.__file__).parent / "jars"
    shown, home = done.stdout.rstrip().rsplit(" ", 1)
    assert shown == f"['bin', 'jars'] {jars.resolve()}"
    # It goes with the process that has made it.
    assert not Path(home).exists()


def test_state_is_in_rocksdb_whoever_opens_the_session() -> None:
    assert session.STATE.items() <= session.SETTINGS.items()
