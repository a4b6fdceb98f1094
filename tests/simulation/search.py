"""How many seeds each seeded bug takes to be found.

What is not found within 1,000 seeds shows that a check or a fault is missing.
"""

from __future__ import annotations

import gc

from tests.simulation.bugs import ALL, BUGS
from tests.simulation.minimise import rules
from tests.simulation.plan import made, on_pulsar
from tests.simulation.run import run

MOST_SEEDS = 1000


def found(name: str, first: int, most: int) -> tuple[int, set[str]] | None:
    """How many seeds a bug needed to be found, and by which rules; None: it was not."""
    gc.collect()
    gc.freeze()
    make = made if name in BUGS else on_pulsar
    for count in range(most):
        outcome = run(make(first + count), bug=ALL[name])
        if outcome.violations:
            return count + 1, rules(outcome.violations)
    return None


def show(names: list[str], first: int, most: int) -> bool:
    """Print how soon each bug is found; whether all were."""
    good = True
    for name in names or ALL:
        result = found(name, first, most)
        if result is None:
            good = False
            print(f"{name}: not found in {most} seeds", flush=True)
        else:
            count, broken = result
            print(f"{name}: seed {count}, by {', '.join(sorted(broken))}", flush=True)
    return good
