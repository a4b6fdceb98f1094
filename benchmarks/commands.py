"""What the `ropeway` command costs: CPU of the whole process, user and kernel.

    $ python -m benchmarks.commands
    $ python -m benchmarks.commands --beside ../before/.venv/bin/ropeway

Each command runs alternately with a Python that does nothing, or with another
installation of the command: what else the machine does then meets both. It takes half a
minute.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import median

from ropeway.testing import running_gateway

COMMANDS = (
    "--version",
    "--help",
    "topic --help",
    "topic list",
    "group list --lag",
    "doctor",
    "consume orders --exit-at-end",
)
ROUNDS = 21


def cpu_ms(command: list[str], environment: dict[str, str]) -> float:
    """CPU time that a command takes, with all that Python does for it."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    child = os.posix_spawn(command[0], command, environment, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, command
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> None:
    """Print a table of all commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", help="another `ropeway` to compare with")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    program = str(Path(sys.executable).with_name("ropeway"))
    other = args.beside or "python"
    print(f"| command | ms | lowest | {other}, ms | to it, in pairs |")
    print("|---|---:|---:|---:|---:|")
    with running_gateway() as gateway:
        environment = {**os.environ, "ROPEWAY_NAME_SERVER": gateway.name_server}
        cpu_ms([program, "topic", "create", "orders"], environment)
        for command in COMMANDS:
            words = command.split()
            beside = (
                [args.beside, *words] if args.beside else [sys.executable, "-c", ""]
            )
            pairs = [
                (cpu_ms([program, *words], environment), cpu_ms(beside, environment))
                for _ in range(args.rounds)
            ]
            ours, others = zip(*pairs, strict=True)
            ratio = median(one / another for one, another in pairs)
            print(
                f"| `ropeway {command}` | {median(ours):.0f} | {min(ours):.0f} "
                f"| {median(others):.0f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
