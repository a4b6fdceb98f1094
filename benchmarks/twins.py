"""What each compiled form saves: microseconds of both forms of each function.

    $ python -m benchmarks.twins
    $ python -m benchmarks.twins --rounds 5

They are given what the fuzzers begin with, which is valid and small: a record or a few.
What makes arguments of that is timed with both forms, so what is saved is right and the
ratio is too small. The least of many rounds is printed, and both forms take turns.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ropeway.common.native import TABLES
from tests.fuzz.targets import TARGETS
from tests.fuzz.twins import outcome

if TYPE_CHECKING:
    from tests.fuzz.twins import Form, Target

ROUNDS = 40
CALLS = 200


def cost_us(target: Target, form: Form) -> float:
    """Microseconds of CPU of one call, over all that the target begins with."""
    began = time.thread_time()
    for _ in range(CALLS):
        for data in target.seeds:
            outcome(target, form, data)
    return (time.thread_time() - began) / CALLS / len(target.seeds) * 1e6


def main(rounds: int) -> None:
    """Print a row for each function."""
    print("| function | Python's, us | compiled, us | saved, us |")
    print("| --- | ---: | ---: | ---: |")
    for module, targets in TARGETS.items():
        for name, target in targets.items():
            python, compiled = TABLES[module][name]
            if compiled is None:
                raise SystemExit(f"{module} was not built")
            pairs = [
                (cost_us(target, python), cost_us(target, compiled))
                for _ in range(rounds)
            ]
            slow, fast = (min(column) for column in zip(*pairs, strict=True))
            place = module.removeprefix("ropeway.").rpartition(".")[0]
            print(f"| {place} {name} | {slow:.2f} | {fast:.2f} | {slow - fast:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    main(parser.parse_args().rounds)
