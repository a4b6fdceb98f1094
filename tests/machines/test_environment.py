"""What holds on this machine holds where locale, time zone or compiler are others.

Tests that are there anyhow run again, in processes with another environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
QUICK = "not jvm and not go and not cpp and not server and not slow"
LOCALE = "tr_TR.ISO-8859-9"
"""Not UTF-8, and the capital of i is not I."""
MESSAGES = (
    *("batches", "compaction", "dispatch", "fast_headers", "forged_properties"),
    *("forged_requests", "forwarded", "half_message", "pop", "pull", "pull_filtered"),
    *("query", "retry", "send", "send_batch", "send_store", "timed", "transactions"),
)
"""Tests of processors that write, read, change or compare messages' bytes."""
STARTED = (
    *("cli/test_serve.py", "cli/test_secured.py", "cli/test_consent.py"),
    "http/metrics/test_of_workers.py",
)
"""Tests that start nodes again and again; `test_demo.py` starts one that is used."""
SOURCES_OF_LOCALES = Path("/usr", "share", "i18n", "locales", "tr_TR")


def passes(paths: list[str], environment: dict[str, str]) -> None:
    """Run the quick tests of some folders, with options, in an environment."""
    command = ["-m", "pytest", "-q", "-n", "0", "-m", QUICK]
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
    """Run what calls functions that have a compiled form.

    All else reaches the codecs of requests and properties alone, as these do.
    """
    paths = ["wire", "node/batches", "node/timer", "node/transactions"]
    paths += ["pop/test_service.py", "pop/test_pop_dispatch.py", "pop/test_revive.py"]
    paths += ["node/test_schedule.py", "node/test_record_builder.py"]
    paths += ["node/test_moved_messages.py"]
    found = [f"tests/gateway/{path}" for path in paths]
    found += [
        f"tests/storage/{log}" for log in ("compaction", "file", "sealed", "tiered")
    ]
    found += [f"tests/gateway/processors/test_{name}.py" for name in MESSAGES]
    passes(found, {"ROPEWAY_PURE": "1"})


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
    left_out = [f"--ignore=tests/gateway/{path}" for path in STARTED]
    passes([*left_out, *(f"tests/{path}" for path in paths)], environment)


def test_what_linux_alone_has_is_not_needed() -> None:
    found = [
        *("storage/file/test_log.py", "storage/file/test_recovery.py"),
        *("storage/file/test_recovery_segments.py", "storage/file/test_trim.py"),
        *("storage/compaction/test_log.py", "storage/tiered/test_log.py"),
        *("routing/test_embedded.py", "gateway/node/test_rocks.py"),
        *("gateway/http/metrics/test_of_node.py", "gateway/processors/test_pop.py"),
    ]
    # Whatever is not in the newest blocks counts as on the disk, so that a filtered
    # read ends sooner.
    options = ["-p", "tests.machines.other_posix", "-k", "not fills_up_to_its_count"]
    passes([*options, *(f"tests/{path}" for path in found)], {})


def test_types_are_right_where_linux_s_calls_are_missing() -> None:
    known = builds.cache() / "checks" / "mypy-darwin"
    command = ["mypy", "--platform", "darwin", "--cache-dir", known]
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
