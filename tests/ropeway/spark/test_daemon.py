"""Workers find what they need imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from ropeway.spark.session import SETTINGS

CODE = """
import sys
import {module}
print([name for name in ("pyarrow", "pandas", "ropeway.streams.spark_plan")
       if name not in sys.modules])
"""


@pytest.mark.slow
def test_the_daemon_that_sessions_name_has_all_imported() -> None:
    name = SETTINGS["spark.python.daemon.module"]
    assert importlib.import_module(name).IMPORTED
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module=name)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n"
