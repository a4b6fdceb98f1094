"""No power cut breaks a promise, and without any one sync some cut would."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chance
from tests.power.cuts import Trace, broken
from tests.power.promises import SITES, SQLITE, WORKLOADS
from tests.power.recorded import HELPERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LONG = {"compaction", "tier", "pop"}
SHOWN = SITES | SQLITE
ROOT = Path(__file__).parents[2]
PACKAGES = ("acl", "gateway", "ropeway", "routing", "storage")
SYNCS = {
    **dict.fromkeys(("fsync", "fdatasync", "sync_data", "sync"), ""),
    "sync_directory": ", names",
}
"""What syncs what it is given, and what the recorder adds to the site's name."""
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="no C compiler for the recorder"
)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trace]:
    """Gives the trace of a workload, which is recorded once."""
    known: dict[str, Trace] = {}

    def trace(name: str) -> Trace:
        if name not in known:
            workload = WORKLOADS[name]
            directory = tmp_path_factory.mktemp("power") / "recorded"
            directory.mkdir()
            if workload.before is not None:
                workload.before(directory)
            known[name] = Trace(directory, *workload.functions())
        return known[name]

    return trace


def _cases(
    values: Iterable[str], workload: Callable[[str], str]
) -> pytest.MarkDecorator:
    """Each value; in the slow tier where its workload is long."""
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(one, marks=pytest.mark.slow if workload(one) in LONG else ())
            for one in values
        ],
    )


@needs_gcc
@_cases(WORKLOADS, str)
def test_no_power_cut_breaks_a_promise(
    tmp_path: Path, traces: Callable[[str], Trace], name: str
) -> None:
    check, seed = WORKLOADS[name].check, chance.seed()
    assert broken(traces(name), check, tmp_path / "left", seed=seed) is None


@needs_gcc
@_cases(SHOWN, SHOWN.__getitem__)
def test_without_a_sync_a_power_cut_breaks_a_promise(
    tmp_path: Path, traces: Callable[[str], Trace], name: str
) -> None:
    workload = SHOWN[name]
    trace = traces(workload)
    assert name in trace.sites()
    assert broken(trace, WORKLOADS[workload].check, tmp_path / "left", without=name)


def test_every_sync_of_the_product_is_shown_to_be_needed() -> None:
    found = {site for package in PACKAGES for site in _sites(ROOT / package)}
    assert found == SITES.keys()


def _sites(package: Path) -> Iterator[str]:
    """The functions that sync, as the recorder names them."""
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "sync" in text:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            module = f"ropeway.{module.removeprefix('ropeway.')}"
            yield from _syncing(ast.parse(text), module)


def _syncing(node: ast.AST, name: str) -> Iterator[str]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _syncing(one, f"{name}.{one.name}")
            continue
        if isinstance(one, ast.Call) and len(one.args) == 1 and name not in HELPERS:
            called = getattr(one.func, "attr", getattr(one.func, "id", ""))
            # ZooKeeper's clients have a `sync` of their own.
            if called in SYNCS and (called != "sync" or "storage." in name):
                yield name + SYNCS[called]
        yield from _syncing(one, name)
