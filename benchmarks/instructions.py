"""Instructions that a message costs, which a busy machine counts right, too.

    $ python -m benchmarks.instructions                           # beside kept figures
    $ python -m benchmarks.instructions --against EARLIER gRPC    # beside a version
    $ python -m benchmarks.instructions --write                   # keep the figures

Valgrind's callgrind counts what the whole process does, without the kernel, from a
request's bytes to its answer's: a start is not counted, and of some rounds the least
is taken, for timers run meanwhile. EARLIER is the folder of a version, made as for
`benchmarks.earlier`; words select cases that have one of them in their names. What
costs over 3 % more is named, and is no failure.

Counts depend on the compiler, the C library and Python, and little on the processor.
So kept figures are compared where Python is the same, and a version is better compared
with an earlier one that was built here.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import table
from tests import builds
from tests.system.ropeway import ROOT

KEPT = Path(__file__).with_suffix(".toml")
MOST = 1.03
"""What is named costs so much more; in most cases a version counted twice differs by
a third of that."""
ROUNDS = 7
TRIGGER = re.compile(r"^desc: Trigger: Client Request: (-?\d+) (.+)$", re.MULTILINE)
TOTALS = re.compile(r"^totals: (\d+)$", re.MULTILINE)
RUN = (
    "import ropeway, runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module('benchmarks.instruction_cases', run_name='__main__')"
)
"""The package is the version's, what asks it is always this one."""
Figures = dict[str, float]


def counted(program: Path, rounds: int, words: list[str]) -> Figures:
    """Instructions of a message, by case.

    Args:
        program: The folder of a version.
        rounds: How often each case is counted.
        words: Of the names of cases; none: all.

    Raises:
        SystemExit: Valgrind is missing, or a case failed.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("valgrind is missing; Debian and Ubuntu have it as a package")
    library = builds.shared_object(Path(__file__).with_name("counter.c"))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        done = subprocess.run(
            [
                *(valgrind, "--tool=callgrind", "--instr-atstart=no", "-q"),
                f"--callgrind-out-file={folder}/out",
                *(sys.executable, "-P", "-c", RUN, str(ROOT)),
                *(str(library), *words, f"--rounds={rounds}"),
            ],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(program), "PYTHONHASHSEED": "0"},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{program} could not be counted:\n{done.stderr}")
        return figures(done.stdout, Path(folder))


def figures(said: str, folder: Path) -> Figures:
    """What a run has counted: by case, the least of its rounds.

    Args:
        said: A line for each case, with the messages of a round.
        folder: Where callgrind has written a file for each count, some a round.
    """
    sums: defaultdict[tuple[str, int], int] = defaultdict(int)
    for path in folder.glob("out.*"):
        text = path.read_text()
        trigger, total = TRIGGER.search(text), TOTALS.search(text)
        if trigger is not None and total is not None:
            sums[trigger[2], int(trigger[1])] += int(total[1])
    found = {}
    for line in said.splitlines():
        messages, _, name = line.partition(" ")
        rounds = [
            count
            for (case, number), count in sums.items()
            if case == name and number >= 0  # the ones before have warmed up
        ]
        found[name] = min(rounds) / int(messages)
    return found


def entries() -> list[dict[str, Any]]:
    """All that are kept, the oldest first."""
    found: list[dict[str, Any]] = tomllib.loads(KEPT.read_text()).get("counted", [])
    return found


def kept() -> dict[str, Any] | None:
    """The newest figures that are kept of this Python."""
    version = platform.python_version()
    return next((one for one in reversed(entries()) if one["python"] == version), None)


def keep(found: Figures, commit: str) -> None:
    """Put the figures of a commit below those that are kept."""
    lines = [f'"{name}" = {figure:.0f}' for name, figure in found.items()]
    text = "\n".join(
        [
            *("", "[[counted]]", f"date = {time.strftime('%Y-%m-%d')}"),
            *(f'commit = "{commit}"', f'python = "{platform.python_version()}"'),
            *("[counted.instructions]", *lines, ""),
        ]
    )
    with KEPT.open("a") as file:
        file.write(text)


def compared(before: Figures, after: Figures) -> tuple[str, list[str]]:
    """A table of both, and a line for what costs more than it may."""
    rows, more = [], []
    for name, now in after.items():
        earlier = before.get(name)
        ratio = now / earlier if earlier else None
        rows.append(
            (
                name,
                "-" if earlier is None else f"{earlier:,.0f}",
                f"{now:,.0f}",
                "-" if ratio is None else f"{ratio:.3f}",
            )
        )
        if ratio is not None and ratio > MOST:
            more.append(f"{name}: {ratio:.3f} of the instructions before")
    return table.table(("a message", "before", "now", "now to before"), rows), more


def _commit() -> str:
    command = ["git", "log", "-1", "--format=%h"]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="of the names of cases")
    parser.add_argument("--against", type=Path, help="folder of an earlier version")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    given = parser.parse_args()
    if given.against is not None:
        before = counted(given.against.resolve(), given.rounds, given.words)
        print(f"Before: {given.against}.", table.circumstances())
    elif entry := kept():
        before = entry["instructions"]
        print(f"Before: {entry['commit']}, {entry['date']}.", table.circumstances())
    else:
        before = {}
        print("No figures of this Python are kept.", table.circumstances())
    after = counted(ROOT, given.rounds, given.words)
    text, more = compared(before, after)
    print(text)
    for line in more:
        print(f"warning: {line}")
    if given.write:
        keep(after, _commit())


if __name__ == "__main__":
    main()
