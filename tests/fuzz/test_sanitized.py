"""Compiled forms touch no memory but their own and do nothing undefined: sanitizers.

The forms are built anew with gcc's sanitizers and fuzzed in a process of their own. It
takes Python's memory from malloc, so that each object is guarded, the smallest too.
`ROPEWAY_SANITIZED_SECONDS=600` has it go on for so long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builds, chance
from tests.compiler import CAN_COMPILE
from tests.fuzz.targets import TARGETS
from tests.fuzz.twins import ROOT, extensions

ROUNDS = 200 * int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))
SECONDS = os.environ.get("ROPEWAY_SANITIZED_SECONDS")
FLAGS = (
    *("-O1", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
ENDS_WITHIN_S = 300


def library(name: str) -> Path:
    """Where gcc has a library of its own; only a name where it has none."""
    asked = ["gcc", f"-print-file-name={name}"]
    return Path(subprocess.check_output(asked, text=True).strip())


needs_sanitizers = pytest.mark.skipif(
    not (CAN_COMPILE and library("libasan.so").is_absolute()),
    reason="gcc, its sanitizers, or Python's headers are missing",
)
pytestmark = [pytest.mark.slow, needs_sanitizers]


def built(module: str, sources: list[Path], headers: list[Path]) -> Path:
    return builds.extension(module.rpartition(".")[2], sources, headers, FLAGS)


def fuzz(
    modules: dict[str, Path], seed: int, last: Path, *how_long: str
) -> subprocess.CompletedProcess[str]:
    """Fuzz compiled modules until something is found, or it was long enough."""
    preloaded = [library("libasan.so"), library("libubsan.so")]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(map(str, preloaded)),
        # Python itself gives some memory back to nobody but the kernel.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    environment.pop("ROPEWAY_PURE", None)
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.sanitized", *how_long),
            *("--seed", str(seed), "--last", str(last)),
            *(f"{name}={path}" for name, path in modules.items()),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S + float(SECONDS or 0),
        check=False,
    )


def said(done: subprocess.CompletedProcess[str], last: Path) -> str:
    round_ = last.read_text("utf-8") if last.exists() else "none"
    return f"{done.stderr[:6000]}\nthe last round: {round_}"


@pytest.mark.timeout(2 * ENDS_WITHIN_S + float(SECONDS or 0))
@chance.fixed_and_fresh
def test_no_input_has_a_compiled_form_leave_its_memory(
    seed: int, tmp_path: Path
) -> None:
    modules = {
        name: built(name, sources, headers)
        for name, (sources, headers) in extensions().items()
    }
    how_long = ("--seconds", SECONDS) if SECONDS else ("--rounds", str(ROUNDS))
    done = fuzz(modules, seed, last := tmp_path / "last", *how_long)
    assert done.returncode == 0, said(done, last)
    found = json.loads(done.stdout)
    functions = {f"{one}.{name}" for one, some in TARGETS.items() for name in some}
    assert found["done"].keys() == found["taken"].keys() == functions
    assert all(found["taken"].values()), found["taken"]
    if SECONDS:
        print(json.dumps(found, indent=1))


ROUNDS_FOR_A_FAULT = 20_000
"""Enough for one that is there; it ends at once where it is found."""
PLANTED = [
    pytest.param(
        "ropeway.storage.compaction._native",
        "if (found.all_bytes != data.len)",
        "if (found.all_bytes < data.len || found.all_bytes > data.len + 8)",
        "heap-buffer-overflow",
        id="reading beyond the end",
    ),
    pytest.param(
        "ropeway.storage.sealed._native",
        "columns = PyBytes_FromStringAndSize(NULL, count * shape->block_bytes);",
        # A byte object has a byte more than its length, for a zero.
        "columns = PyBytes_FromStringAndSize(NULL, count * shape->block_bytes - 2);",
        "heap-buffer-overflow",
        id="writing a byte beyond the end",
    ),
    pytest.param(
        "ropeway.storage.compaction._native",
        "return store_ms < INT64_MAX - rules->keyless_ms ?",
        "return 1 ?",
        "signed integer overflow",
        id="a sum that overflows",
    ),
]


@pytest.mark.parametrize(("module", "right", "wrong", "report"), PLANTED)
def test_a_planted_fault_is_found(
    module: str, right: str, wrong: str, report: str, tmp_path: Path
) -> None:
    (source,), headers = extensions()[module]
    text = source.read_text("utf-8")
    assert text.count(right) == 1
    changed = tmp_path / source.name
    changed.write_text(text.replace(right, wrong), "utf-8")
    for header in headers:
        (tmp_path / header.name).write_bytes(header.read_bytes())
    modules = {module: built(module, [changed], headers)}
    how_long = ("--rounds", str(ROUNDS_FOR_A_FAULT))
    done = fuzz(modules, chance.FIXED, last := tmp_path / "last", *how_long)
    assert done.returncode != 0, said(done, last)
    assert report in done.stderr, said(done, last)
