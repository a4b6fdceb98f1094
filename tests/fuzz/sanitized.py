"""Fuzzes compiled forms that were built with sanitizers; a process of its own.

    $ LD_PRELOAD=libasan.so PYTHONMALLOC=malloc python -m tests.fuzz.sanitized \
          --rounds 500 --seed 20 --last FILE storage.sealed._native=PATH ...

What a sanitizer finds ends the process. FILE has the function and the bytes of the
last round then, and the seed repeats them all. At the end the rounds are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import count
from pathlib import Path

AT_ONCE = 50
"""Rounds of one function before the next one's."""


def load(name: str, path: str) -> None:
    """Put a module where its functions' owners look for it."""
    spec = spec_from_loader(name, ExtensionFileLoader(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, help="of each function")
    parser.add_argument("--seconds", type=float, help="of all together")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--last", type=Path, required=True)
    parser.add_argument("modules", nargs="+")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    wanted = dict(one.split("=", 1) for one in given.modules)
    for name, path in wanted.items():
        load(name, path)
    # Only now, since they look for compiled forms when they are imported.
    from ropeway.common.native import TABLES
    from tests.fuzz.targets import TARGETS
    from tests.fuzz.twins import Refused, given_to, outcome

    targets = {
        f"{module}.{name}": (target, TABLES[module][name][1])
        for module in wanted
        for name, target in TARGETS[module].items()
    }

    def is_taken(got: object) -> bool:
        return not isinstance(got, Refused) and got is not None

    taken: dict[str, int] = {}
    for name, (target, form) in targets.items():
        assert form is not None
        path = wanted[name.rpartition(".")[0]]
        assert sys.modules[form.__module__].__file__ == path, name
        # Of two hundred damaged batches it may happen that none is taken.
        taken[name] = sum(is_taken(outcome(target, form, one)) for one in target.seeds)
    done = dict.fromkeys(targets, 0)
    deadline = time.monotonic() + (given.seconds or 0)
    last = os.open(given.last, os.O_RDWR | os.O_CREAT)
    for turn in count(1):
        for name, (target, form) in targets.items():
            assert form is not None
            for _ in range(AT_ONCE):
                data = given_to(target, chance)
                os.ftruncate(last, 0)
                os.pwrite(last, f"{name} {data.hex()}".encode(), 0)
                got = outcome(target, form, data)
                taken[name] += is_taken(got)
            done[name] += AT_ONCE
        if given.rounds and turn * AT_ONCE >= given.rounds:
            break
        if given.seconds and time.monotonic() > deadline:
            break
    json.dump({"done": done, "taken": taken}, sys.stdout)


if __name__ == "__main__":
    main()
