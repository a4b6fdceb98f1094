"""Whether this machine can build the compiled forms: a C compiler, Python's headers."""

import shutil
import sysconfig
from pathlib import Path

import pytest

CAN_COMPILE = (
    shutil.which("gcc") is not None
    and (Path(sysconfig.get_path("include")) / "Python.h").exists()
)

needs_compiled_forms = pytest.mark.skipif(
    not CAN_COMPILE, reason="no C compiler, or Python's headers are missing"
)
"""What can be built has been built, by scripts/setup; a test fails where it was not."""
