"""Where Ropeway's CPU goes in a case: a flame graph, made by py-spy.

    $ python -m benchmarks.profile "single 128 B, 64"
    $ python -m benchmarks.profile --native --out build/pull.svg page cache
    $ python -m benchmarks.profile --out build/batch.speedscope.json batch

It starts Ropeway, gives it the load of the first case that has the words in its name,
and writes an SVG for the browser, or JSON for speedscope where the file's name ends so.
py-spy reads the memory of another process: as root, or where ptrace is allowed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import cases, rounds, servers
from benchmarks.java_load import JavaLoad

SAMPLES_A_SECOND = 500
PREPARE_S = 0.5
END_S = 300
"""For py-spy to look up names and write its file."""


def profiler() -> str:
    """py-spy, of the same environment if it is there.

    Raises:
        SystemExit: it is not installed.
    """
    beside = Path(sys.executable).parent
    found = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if found is None:
        raise SystemExit("py-spy is missing; it comes with the extra `dev`")
    return found


def record(case: cases.Case, seconds: float, out: Path, *, native: bool) -> None:
    """Load Ropeway with a case, and write where its time went."""
    out.parent.mkdir(parents=True, exist_ok=True)
    program = profiler()
    with JavaLoad() as java, servers.running(servers.ropeway, case.flush) as server:
        one = rounds.Round(server, case, "bench_profile", PREPARE_S, java)
        rounds.measure(one)
        sampling = subprocess.Popen(
            [
                *(program, "record", "--pid", str(server.pid), "--output", out),
                *("--duration", str(max(1, round(seconds)))),
                *("--rate", str(SAMPLES_A_SECOND)),
                *("--format", "speedscope" if out.suffix == ".json" else "flamegraph"),
                *(["--native"] if native else []),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            # It says that it begins, which takes it a while.
            assert sampling.stdout is not None
            sampling.stdout.readline()
            # What is to be pulled is there by now, and is not to be in the picture.
            again = one._replace(case=case._replace(fill=0, bury=0))
            rounds.measure(again._replace(seconds=seconds))
            code = sampling.wait(END_S)
        finally:
            sampling.kill()
            sampling.wait()
    if code:
        raise SystemExit(f"py-spy ended with {code}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="+", help="a part of the name of a case")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("build/profile.svg"))
    parser.add_argument("--native", action="store_true", help="frames of C code, too")
    given = parser.parse_args()
    case = cases.chosen([" ".join(given.words)])[0]
    record(case, given.seconds, given.out, native=given.native)
    print(f"{case.name}: {given.out}")


if __name__ == "__main__":
    main()
