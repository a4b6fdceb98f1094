"""Runs one core's tests against many mutants, from a single collection of the tests.

    python -m scripts.mutants.session PLAN

Started by the driver in a copy of the tree. The tests are collected once. A forked
child runs them all and notes the lines that each reaches. Then each mutant has a forked
child of its own, in which the changed function's code is put into place and those tests
are run that reach the line: first those of the file by the path law, then those of its
folder, then the wider ones. What only an import would show (constants of a module,
defaults, what decorators make) is run by a pytest of its own instead, see `alone`.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.mutants import alone, children, unreached
from scripts.mutants.cores import CORES, distance
from scripts.mutants.operators import Mutant, mutants
from scripts.mutants.patching import functions_of, lines_of, patch
from scripts.mutants.reach import Reach
from scripts.mutants.results import LIVED

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "ropeway"
"""The folder by whose links sources are imported, and so its part of their paths."""
MOST_SECONDS = 20.0
"""Tests of one mutant are chosen until they took this together; by law the double."""
BESIDE_SECONDS = 4.0
"""What else of its folder is run for a mutant that only an import shows."""
SLACK_SECONDS = 20.0
"""What a mutant may take beside thrice its tests, and each test likewise: machines are
loaded."""
WAIT_SECONDS = 10.0
"""How long a test waits for what does not come: without a change it may be a minute."""
IDLE_SECONDS = 8.0
"""And for how long it may wait, beside twice the longest of them, without computing."""
NOT_PATCHED = "not patched"
LEFT_OUT = ["go", "cpp", "slow"]
"""Tests with one of these marks are never run, and with these only with servers."""
OF_SERVERS = ["jvm", "server"]


@dataclass
class Test:
    """What the run without a change told of a test."""

    seconds: float
    passed: bool
    lines: set[tuple[str, int]]


@dataclass(frozen=True)
class Plan:
    """What the driver wants done.

    Args:
        core: The name of the core.
        keys: The mutants.
        results: Where results are appended, a line each.
        state: The folder in which the run without a change is kept.
        scratch: A folder for temporary files, emptied between mutants.
        servers: Whether tests that need the core's server are run, too.
    """

    core: str
    keys: list[str]
    results: str
    state: str
    scratch: str
    servers: bool


class Campaign:
    """A plugin that takes the place of pytest's own loop over the tests."""

    def __init__(self, plan: Plan, reach: Reach) -> None:
        self.plan = plan
        self.root = Path.cwd()
        self.package = self.root / PACKAGE
        # A server that is started once has its folder beside.
        self.children = f"{plan.scratch}/c"
        self.core = CORES[plan.core]
        self.reach = reach
        self.imported: set[tuple[str, int]] = set()
        self.tests: dict[str, Test] = {}
        self.items: dict[str, pytest.Item] = {}
        self.failed: str | None = None
        self.why = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Leave nothing to chance or to another session."""
        # It ends servers between groups of tests; ours end with the session.
        config.pluginmanager.unregister(name="tests.distribution")

    def pytest_collection_finish(self) -> None:
        """Know what the imports have run."""
        self.reach.stop()
        self.imported = self.reach.note()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failure."""
        if report.failed and self.failed is None:
            self.failed = report.nodeid
            self.why = report.longreprtext[-2000:]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run each mutant."""
        self.items = {item.nodeid: item for item in session.items}
        if self.plan.servers and self.core.server:
            self._start_server(self.core.server)
        self.tests = self._baseline()
        # What is kept until here serves all that is started. A mutant's must not stay.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        wanted = set(self.plan.keys)
        for path in self.core.files(self.root):
            source = (self.root / path).read_bytes()
            chosen = [one for one in mutants(path, source) if one.key in wanted]
            if chosen:
                self._file(path, source, chosen)
        return True

    def _start_server(self, fixture: str) -> None:
        """Have a fixture of the session live in this process, for all children."""
        asking = [i for i in self.items.values() if fixture in i.fixturenames]  # type: ignore[attr-defined]
        others = [i for i in asking if i.path != asking[0].path]
        asking[0].config.hook.pytest_runtest_protocol(
            item=asking[0], nextitem=others[0]
        )
        if self.failed is not None:
            raise SystemExit(f"{fixture} does not run: {self.why}")

    def _run(self, nodeids: list[str], *, limited: bool = False) -> Iterator[str]:
        """Run tests, and give the name of each behind it.

        Args:
            nodeids: The tests.
            limited: Whether this process ends in one that takes far too long.
        """
        for nodeid, following in zip(nodeids, [*nodeids[1:], None], strict=True):
            item = self.items[nodeid]
            if limited:
                signal.alarm(int(SLACK_SECONDS + 3 * self.tests[nodeid].seconds))
            nextitem = self.items[following] if following else self._last(item)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            yield nodeid

    def _last(self, item: pytest.Item) -> pytest.Item | None:
        """What is named as the test behind the last: it decides what is ended."""
        if not self.plan.servers:
            return None
        return next((i for i in self.items.values() if i.path != item.path), None)

    # --- Without a change ------------------------------------------------------

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr(sorted(self.items)).encode())
        for path in self.core.files(self.root):
            digest.update((self.root / path).read_bytes())
        for folder in [*self.core.tests, *self.core.wider]:
            home = self.root / folder
            for file in sorted(home.rglob("*.py")) if home.is_dir() else [home]:
                digest.update(file.read_bytes())
        return digest.hexdigest()

    def _baseline(self) -> dict[str, Test]:
        name = self.plan.core.replace("/", "-") + ("-servers" * self.plan.servers)
        kept = Path(self.plan.state, f"{name}.baseline")
        fingerprint = self._fingerprint()
        if kept.exists():
            known, tests = pickle.loads(kept.read_bytes())
            if known == fingerprint:
                return tests  # type: ignore[no-any-return]

        def measure() -> None:
            tests: dict[str, Test] = {}
            began = time.monotonic()
            self.reach.start()
            for nodeid in self._run(list(self.items)):
                self.reach.stop()
                took = time.monotonic() - began
                tests[nodeid] = Test(took, self.failed is None, self._lines())
                if self.failed is not None:
                    children.tell(f"fails without a change: {nodeid}\n{self.why}\n")
                self.failed = None
                began = time.monotonic()
                self.reach.start()
            lines = (line for test in tests.values() for line in test.lines)
            unreached.keep(kept.with_suffix(".reached"), lines)
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps((fingerprint, tests)))
            part.replace(kept)

        outcome = children.run(measure, self._prepare, 3600, 600)
        if outcome.status != "done":
            raise SystemExit(f"{self.plan.core}: without a change: {outcome.status}")
        return self._baseline()

    def _lines(self) -> set[tuple[str, int]]:
        return {
            (str(Path(path).relative_to(self.package)), line)
            for path, line in self.reach.note()
        }

    # --- With one --------------------------------------------------------------

    def _file(self, path: str, source: bytes, chosen: list[Mutant]) -> None:
        full = self.package / path
        functions = functions_of(str(full))
        at_import = {line for where, line in self.imported if where == str(full)}
        lines = lines_of(compile(source, path, "exec"))
        for mutant in chosen:
            # A line that is a piece of an expression counts as the one before it.
            line = max((n for n in lines if n <= mutant.line), default=mutant.line)
            with alone.on_disk(full, mutant.apply(source)):
                row = self._mutant(mutant, source, line, functions)
                if row["status"] in {NOT_PATCHED, "import"} or (
                    row["status"] in {"survived", "unreached"} and line in at_import
                ):
                    row = self._alone(mutant)
            self._write(mutant, row)

    def _mutant(
        self, mutant: Mutant, source: bytes, line: int, functions: Any
    ) -> dict[str, Any]:
        if not mutant.in_function:
            return {"status": "import"}
        chosen = self._choose(mutant.path, line)
        if not chosen:
            return {"status": "unreached", "tests": 0, "seconds": 0.0}
        failed: list[str] = []

        def look() -> None:
            children.wait_less(WAIT_SECONDS)
            full = str(self.package / mutant.path)
            if not patch(full, source, mutant.apply(source), functions):
                failed.append(NOT_PATCHED)
                return
            for _ in self._run(chosen, limited=True):
                if self.failed is not None:
                    failed.append(self.failed)
                    return

        expected = sum(self.tests[nodeid].seconds for nodeid in chosen)
        began = time.monotonic()
        longest = max(self.tests[nodeid].seconds for nodeid in chosen)
        outcome = children.run(
            look,
            self._prepare,
            SLACK_SECONDS + 3 * expected,
            IDLE_SECONDS + 2 * longest,
            lambda: failed,
        )
        children.resume_all()
        row: dict[str, Any] = {
            "tests": len(chosen),
            "seconds": round(time.monotonic() - began, 2),
        }
        if outcome.status != "done":
            return row | {"status": outcome.status}
        if outcome.value == [NOT_PATCHED]:
            return row | {"status": NOT_PATCHED}
        if outcome.value:
            return row | {"status": "killed", "by": outcome.value[0]}
        return row | {"status": "survived"}

    def _choose(self, path: str, line: int) -> list[str]:
        """The tests that reach a line: nearest first, then quickest."""
        reaching = sorted(
            (distance(path, nodeid.partition("::")[0]), test.seconds, nodeid)
            for nodeid, test in self.tests.items()
            if test.passed and (path, line) in test.lines
        )
        chosen: list[str] = []
        spent = 0.0
        for far, seconds, nodeid in reaching:
            if chosen and spent + seconds > MOST_SECONDS * (2 if far == 0 else 1):
                continue
            chosen.append(nodeid)
            spent += seconds
        return chosen

    def _alone(self, mutant: Mutant) -> dict[str, Any]:
        """Run the nearest test files in a process of their own."""
        files: dict[str, float] = {}
        beside: dict[str, float] = {}
        for nodeid, test in self.tests.items():
            name = nodeid.partition("::")[0]
            touches = any(path == mutant.path for path, _ in test.lines)
            far = distance(mutant.path, name)
            if touches or far == 0:
                files[name] = files.get(name, 0.0) + test.seconds
            elif far == 1:
                # It may look at what the import made, such as a table.
                beside[name] = beside.get(name, 0.0) + test.seconds
        if not files:
            # It is only imported: its core's tests may look at what that made.
            for nodeid, test in self.tests.items():
                name = nodeid.partition("::")[0]
                files[name] = files.get(name, 0.0) + test.seconds
        failing = [nodeid for nodeid, test in self.tests.items() if not test.passed]
        ordered = sorted(
            files, key=lambda one: (distance(mutant.path, one), files[one])
        )
        chosen = [
            *alone.within(ordered, files, MOST_SECONDS),
            *alone.within(
                sorted(beside.keys() - files, key=beside.__getitem__),
                beside,
                BESIDE_SECONDS,
            ),
        ]
        chosen += [name for name in self.core.tables if name not in chosen]
        row = alone.run(chosen, failing, self.children, LEFT_OUT + OF_SERVERS)
        if self.plan.servers and row["status"] in LIVED:
            # Its server has to start, too: only where it is needed.
            row = alone.run(chosen, failing, self.children, LEFT_OUT)
        return row

    def _prepare(self) -> None:
        """In a child: temporary files of its own, and names no other child has."""
        children.use_scratch(self.children)
        config: Any = next(iter(self.items.values())).config
        factory = config._tmp_path_factory  # noqa: SLF001 - a fork has no session
        factory._basetemp = None  # noqa: SLF001
        factory._given_basetemp = Path(self.children, "p")  # noqa: SLF001
        children.count_anew()
        self.failed = None

    def _write(self, mutant: Mutant, row: dict[str, Any]) -> None:
        row = {
            "key": mutant.key,
            "core": self.plan.core,
            "path": mutant.path,
            "line": mutant.line,
            "operator": mutant.operator,
        } | row
        with Path(self.plan.results).open("a") as file:
            file.write(json.dumps(row) + "\n")


def main(arguments: list[str]) -> int:
    """Collect, measure, and run each mutant."""
    plan = Plan(**json.loads(Path(arguments[0]).read_text()))
    core = CORES[plan.core]
    root = Path.cwd()
    reach = Reach(str(root / PACKAGE / one) for one in core.files(root))
    shutil.rmtree(plan.scratch, ignore_errors=True)
    Path(plan.scratch).mkdir(parents=True)
    campaign = Campaign(plan, reach)
    marks = LEFT_OUT if plan.servers else LEFT_OUT + OF_SERVERS
    reach.start()
    try:
        return pytest.main(
            [
                *core.tests,
                *core.wider,
                *alone.OPTIONS,
                f"--basetemp={plan.scratch}/b",
                *["-m", f"not ({' or '.join(marks)})"],
            ],
            plugins=[campaign],
        )
    finally:
        reach.stop()
        shutil.rmtree(plan.scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
