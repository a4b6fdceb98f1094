"""A gateway that is killed at a step of a queue's move: `STEP -m MODULE serve ...`."""

import os
import signal
import sys
from typing import Any, NamedTuple

from ropeway.gateway.cli.main import main
from ropeway.gateway.node import moves
from ropeway.gateway.node.arrivals import Arrivals


class Step(NamedTuple):
    """When a process dies."""

    holder: Any
    name: str
    """What is called then; of a coroutine function, before anything else is done."""
    broker: int
    """Which one dies: 0 gives the queue, 1 takes it."""
    moved: bool
    """Whether the queue is the taker's afterwards."""


STEPS = {
    "withdrawn": Step(moves.Moves, "_handed", 0, moved=False),
    "handed over": Step(moves, "moved", 0, moved=False),
    "changed": Step(moves.Moves, "_as_moved", 0, moved=True),
    "asked to take": Step(Arrivals, "put", 1, moved=False),
    "come": Step(Arrivals, "forget", 1, moved=True),
}


def die(*_args: Any, **_more: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    step = STEPS[sys.argv[1]]
    setattr(step.holder, step.name, die)
    main(sys.argv[4:])
