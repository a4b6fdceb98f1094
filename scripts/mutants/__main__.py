"""Makes small changes to the cores in copies of the tree, and tells which ones live.

    python -m scripts.mutants run 200 wire pop   200 mutants of each of these cores
    python -m scripts.mutants run 40 --seed 7    40 others of each core
    python -m scripts.mutants run 0              only again those that lived
    python -m scripts.mutants show wire          survivors, as diffs
    python -m scripts.mutants unreached wire     lines that no test reaches, after a run
    python -m scripts.mutants table              figures, as docs/testing.md has them

A run that was ended goes on where it was: what is known is not asked again. What is
known to change no behaviour stands in `equivalent.toml`, with the reasons.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from scripts.mutants import results, unreached
from scripts.mutants.cores import CORES
from scripts.mutants.operators import Mutant, mutants

ROOT = Path(__file__).parents[2]
PART = 120
"""Mutants that one session runs: a core's parts are shared among the jobs."""


def sample(root: Path, core: str, number: int, seed: int) -> list[Mutant]:
    """The first of a core's mutants in an order that the seed makes."""
    found = []
    for path in CORES[core].files(root):
        found += mutants(path, (root / path).read_bytes())
    random.Random(f"{seed} {core}").shuffle(found)
    return found[:number]


def copy_tree(target: Path) -> None:
    """Copy what git keeps or would keep, and what was compiled beside it."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    compiled = [
        str(one.relative_to(ROOT))
        for package in ("gateway", "storage")
        for one in (ROOT / package).rglob("*.so")
    ]
    for name in {*listed, *compiled}:
        if name and ((ROOT / name).is_file() or (ROOT / name).is_symlink()):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    (target / ".venv").symlink_to(ROOT / ".venv")


class Job(threading.Thread):
    """Takes parts of cores from a queue and runs a session for each, in its copy."""

    def __init__(
        self, number: int, parts: queue.Queue[dict[str, object]], state: Path
    ) -> None:
        super().__init__(daemon=True)
        # Short: paths of sockets are no longer than 107 bytes.
        self._home = Path(tempfile.gettempdir(), "mutants", f"{os.getpid()}.{number}")
        self._parts = parts
        self._log = state / f"session-{os.getpid()}.{number}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Go on until the queue is empty."""
        tree = self._home / "tree"
        copy_tree(tree)
        plan = self._home / "plan.json"
        environment = os.environ | {
            "ROPEWAY_PURE": "1",  # the compiled forms would hide their Python twins
            "PYTHONPATH": str(tree),
            "PYTHONHASHSEED": "0",
            "ROPEWAY_SEED": "1",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        while True:
            try:
                part = self._parts.get_nowait()
            except queue.Empty:
                break
            plan.write_text(json.dumps(part | {"scratch": str(self._home / "s")}))
            with self._log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "scripts.mutants.session", str(plan)],
                    cwd=tree,
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            code = self.process.wait()
            print(f"{part['core']}: a part ended with {code}", flush=True)
        shutil.rmtree(self._home, ignore_errors=True)

    def end(self) -> None:
        """End the session with all that it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self._home, ignore_errors=True)


def run(options: argparse.Namespace) -> int:
    """Run what is not known yet of a sample of each core."""
    options.state.mkdir(parents=True, exist_ok=True)
    file = options.state / "results.jsonl"
    parts: list[tuple[int, dict[str, object]]] = []
    known = results.read(file)
    current = results.current(ROOT, known.values())
    for core in options.cores or CORES:
        wanted = sample(ROOT, core, options.number, options.seed)
        keys = [one.key for one in wanted if one.key not in known]
        if options.again or not options.number:
            keys += [
                one["key"] for one in results.surviving(current) if one["core"] == core
            ]
        for at in range(0, len(keys), PART):
            part = {
                "core": core,
                "keys": keys[at : at + PART],
                "results": str(file),
                "state": str(options.state),
                "servers": options.servers,
            }
            parts.append((at, part))
    waiting: queue.Queue[dict[str, object]] = queue.Queue()
    # The first parts of all cores first: what they measure serves the others.
    for _, part in sorted(parts, key=lambda one: one[0]):
        waiting.put(part)
    jobs = [Job(number, waiting, options.state) for number in range(options.jobs)]
    for job in jobs:
        job.start()
    try:
        for job in jobs:
            job.join()
    except KeyboardInterrupt:
        while not waiting.empty():  # so that no job begins another part
            waiting.get_nowait()
        for job in jobs:
            job.end()
        return 130
    print(results.table(results.current(ROOT, results.read(file).values())))
    return 0


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("number", type=int)
    running.add_argument("cores", nargs="*", choices=[[], *CORES])
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--jobs", type=int, default=2)
    running.add_argument("--servers", action="store_true")
    running.add_argument("--again", action="store_true", help="survivors, too")
    showing = commands.add_parser("show")
    showing.add_argument("cores", nargs="*", choices=[[], *CORES])
    telling = commands.add_parser("unreached")
    telling.add_argument("cores", nargs="*", choices=[[], *CORES])
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "run":
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return run(options)
    if options.command == "unreached":
        for core in options.cores or CORES:
            print(*unreached.of_core(ROOT, core, options.state), sep="\n")
        return 0
    known = results.read(options.state / "results.jsonl")
    rows = results.current(ROOT, known.values())
    if options.command == "table":
        print(results.table(rows))
        return 0
    for row in results.surviving(rows):
        if row["core"] in (options.cores or CORES):
            print(results.told(ROOT, row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
