"""Runs seeds and plans of the simulator.

    python -m tests.simulation --seed 17                one seed, with its timeline
    python -m tests.simulation --plan '{"seed":17}'     a plan that was cut down
    python -m tests.simulation --first 0 --count 500    many; a line for each failure
    python -m tests.simulation --first 0 --minutes 480  as many as the time allows
    python -m tests.simulation --seed 17 --minimise     the least that fails as 17 does
    python -m tests.simulation --bugs                   how soon seeded bugs are found

It exits with 1 where something that has to hold did not.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from tests.simulation import bugs, search
from tests.simulation.minimise import minimised
from tests.simulation.plan import dumped, loaded, made, on_pulsar
from tests.simulation.run import run
from tests.simulation.world import WORLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.plan import Plan
    from tests.simulation.run import Outcome
    from tests.simulation.seeded import Bug

PLANS = {"embedded": made, "pulsar": on_pulsar}
HASH_SEED = "0"
"""The order of sets of texts is Python's own chance."""


def shown(plan: Plan, outcome: Outcome) -> str:
    """A failure: what did not hold, and how to see it again."""
    lines = [f"seed {plan.seed}: {len(outcome.violations)} violations"]
    lines += [f"    {one}" for one in outcome.violations[:5]]
    lines.append(f"    python -m tests.simulation --plan '{dumped(plan)}'")
    return "\n".join(lines)


def replay(plan: Plan, bug: Bug | None) -> bool:
    """Run one plan and print what happened; whether all held."""
    outcome = run(plan, keep=True, bug=bug)
    print("\n".join(outcome.timeline))
    if outcome.violations:
        print(shown(plan, outcome))
    print(f"checksum {outcome.checksum}")
    return not outcome.violations


def seeds(first: int, count: int | None, minutes: float | None) -> Iterator[int]:
    """The seeds that are asked for."""
    until_s = time.time() + (minutes or 0.0) * 60
    seed = first
    while (count is not None and seed < first + count) or (
        minutes is not None and time.time() < until_s
    ):
        yield seed
        seed += 1


def many(
    first: int,
    count: int | None,
    minutes: float | None,
    make: Callable[[int], Plan] = made,
) -> bool:
    """Run many seeds, print those that fail, and what all of them were."""
    # What is imported stays: to look for garbage among it takes a tenth of the time.
    gc.collect()
    gc.freeze()
    done = failed = faults = messages = 0
    checksums = hashlib.sha256()
    simulated_s = took_s = 0.0
    # What a run that is ended early was is told, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for seed in seeds(first, count, minutes):
        plan = make(seed)
        try:
            outcome = run(plan)
        except KeyboardInterrupt:
            break
        done += 1
        checksums.update(outcome.checksum.encode())
        faults += outcome.faults
        messages += outcome.acknowledged
        simulated_s += outcome.simulated_s
        took_s += outcome.took_s
        if outcome.violations:
            failed += 1
            print(shown(plan, outcome), flush=True)
    rate = max(took_s, 1e-9)
    print(
        f"{done} seeds from {first}, {failed} failed; {faults} faults "
        f"({faults / rate:.0f} a second of CPU), {messages} messages acknowledged, "
        f"{simulated_s:.0f} s simulated ({simulated_s / rate:.0f} a second of CPU); "
        f"checksum {checksums.hexdigest()[:16]}"
    )
    gc.collect()
    if WORLDS:
        print(f"something is left of {len(WORLDS)} of {done} runs")
    # A rare one is kept by what was unwound in it; each of them would fill the memory.
    return not failed and len(WORLDS) <= 1 + done // 20


def main() -> None:
    """Do what the command line says."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", __package__, *sys.argv[1:]])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--plan")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--minimise", action="store_true")
    parser.add_argument("--bug", choices=bugs.ALL, help="for one seed or plan")
    parser.add_argument("--bugs", nargs="*")
    parser.add_argument("--log", choices=PLANS, default="embedded")
    given = parser.parse_args()
    make = PLANS[given.log]
    bug = bugs.ALL.get(given.bug)
    if given.plan is not None or given.seed is not None:
        plan = loaded(given.plan) if given.plan is not None else make(given.seed)
        good = replay(minimised(plan, bug) if given.minimise else plan, bug)
    elif given.bugs is not None:
        good = search.show(given.bugs, given.first, given.count or search.MOST_SEEDS)
    else:
        good = many(given.first, given.count, given.minutes, make)
    sys.exit(not good)


if __name__ == "__main__":
    main()
