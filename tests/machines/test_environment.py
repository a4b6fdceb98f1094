"""What holds on this machine holds where locale, time zone or compiler are others.

Tests that are there anyhow run again, in processes with another environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUICK = "not jvm and not go and not cpp and not server and not slow"
LOCALE = "tr_TR.ISO-8859-9"
"""Not UTF-8, and the capital of i is not I."""
SOURCES_OF_LOCALES = Path("/usr", "share", "i18n", "locales", "tr_TR")


def passes(paths: list[str], environment: dict[str, str]) -> None:
    """Run the quick tests of some folders in an environment of their own."""
    command = ["-m", "pytest", "-q", "-n", "2", "--dist", "loadscope", "-m", QUICK]
    done = subprocess.run(
        [sys.executable, *command, "-p", "no:cacheprovider", *paths],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_python_s_own_forms_do_what_the_compiled_ones_do() -> None:
    paths = ["gateway/wire", "gateway/processors", "gateway/pop", "gateway/node"]
    paths += ["storage/file", "storage/compaction", "storage/tiered", "gateway/cli"]
    passes([f"tests/{path}" for path in paths], {"ROPEWAY_PURE": "1"})


@pytest.mark.skipif(
    not SOURCES_OF_LOCALES.exists(), reason="the package `locales` is not installed"
)
def test_no_locale_and_no_time_zone_changes_a_thing(tmp_path: Path) -> None:
    subprocess.run(
        ["localedef", "-i", "tr_TR", "-f", "ISO-8859-9", tmp_path / LOCALE], check=True
    )
    environment = {
        "LOCPATH": str(tmp_path),
        "LC_ALL": LOCALE,
        # Half an hour of daylight saving, on top of a half hour.
        "TZ": "Australia/Lord_Howe",
        "PYTHONUTF8": "0",
    }
    said = subprocess.run(
        [sys.executable, "-c", "import locale; print(locale.getpreferredencoding())"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "ISO-8859-9"
    paths = ["acl", "gateway/cli", "gateway/node/timer", "gateway/http", "routing"]
    paths += ["gateway/test_config_file.py", "gateway/node/transactions"]
    passes([f"tests/{path}" for path in paths], environment)
