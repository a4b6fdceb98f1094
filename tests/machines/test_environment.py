"""What holds on this machine holds where locale, time zone or compiler are others.

Tests that are there anyhow run again, in processes with another environment.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builds, chance
from tests.test_laws import sources

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
QUICK = " and ".join(f"not {one}" for one in chance.TIERS)
LOCALE = "tr_TR.ISO-8859-9"
"""Not UTF-8, and the capital of i is not I."""
TWINS = {
    "gateway/node": "moved_messages record_builder",
    "gateway/node/batches": "records",
    "gateway/node/timer": "delivery intake pending_timers record_reader",
    "gateway/node/transactions": "end_records records",
    "gateway/pop": "revive",
    "gateway/processors": (
        "compaction forged_properties forged_requests query send_batch send_store"
    ),
    "gateway/wire": "compaction_rows frame properties record_rewrite send_codec",
    "storage/compaction": (
        "directory file latest offset_map round snapshot steps writer"
    ),
    "storage/file": (
        "block log log_scan partition reader recovery segments selection writer"
    ),
    "storage/sealed": "columns index pick version_1 writer",
    "storage/tiered": "partition segment_merge",
}
"""Tests that reach each call of a function with a compiled form, and its own tests."""
ASKING = {
    "gateway/cli/times.py": ("gateway/cli/test_times.py", "gateway/cli/test_timer.py"),
    "gateway/node/traffic.py": ("gateway/node/test_traffic.py",),
    "gateway/self_signed.py": ("gateway/test_self_signed.py",),
    "ropeway/client/ids.py": ("ropeway/client/test_ids.py",),
    "ropeway/common/system.py": ("ropeway/common/test_system.py",),
    "routing/database.py": ("routing/test_database.py",),
    "routing/embedded.py": ("routing/test_embedded.py", "routing/test_leases.py"),
    "storage/file/offsets.py": ("storage/file/test_offsets.py",),
    "storage/tiered/metadata.py": ("storage/tiered/test_metadata.py",),
}
"""What asks for the local time or the locale, or has SQLite ask, and its tests."""
_ASKS = re.compile(
    r"\b(astimezone|fromtimestamp|localtime|mktime|strftime|strptime|utcoffset"
    r"|getpreferredencoding|locale|sqlite3)\b|\.now\(|text=True|read_text\(\)"
)
SPOKEN = (
    *("acl/test_audit", "acl/test_bootstrap", "acl/test_plain_file", "acl/test_users"),
    *("gateway/test_config_file", "gateway/test_logs", "gateway/http/test_day_history"),
    *("gateway/cli/test_consume", "gateway/cli/test_message"),
    *("gateway/cli/test_context_file", "gateway/cli/test_demo"),
    *("gateway/cli/test_output", "gateway/cli/test_produce", "gateway/cli/test_stdin"),
    *("gateway/cli/test_seek_file", "gateway/cli/test_tables", "gateway/cli/test_user"),
)
"""Tests of text that comes from files, arguments and pipes, or goes there."""
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
    """Run each call of a function that has a compiled form, and what it is tested by.

    All else does with these forms what it does with those: `tests/fuzz/test_twins.py`.
    """
    found = [
        f"tests/{folder}/test_{name}.py"
        for folder, names in TWINS.items()
        for name in names.split()
    ]
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
    paths = [*itertools.chain(*ASKING.values()), *(f"{path}.py" for path in SPOKEN)]
    passes([f"tests/{path}" for path in paths], environment)


def test_what_asks_for_a_locale_or_a_time_zone_is_run_in_others() -> None:
    asking = {name for name in sources() if _ASKS.search((ROOT / name).read_text())}
    assert asking == ASKING.keys()


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
