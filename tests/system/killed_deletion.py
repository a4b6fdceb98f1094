"""A gateway that is killed at a step of a deletion: `STEP -m MODULE serve ...`."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from ropeway.gateway.cli.main import main
from ropeway.gateway.node import deletions

STEPS = {
    "decided": (deletions.Deletions, "finish"),
    "forgotten": (deletions, "applied"),
    "applied": (deletions.Deletions, "empty"),
    "emptied": (deletions, "emptied"),
}
"""What is called when a step is done; each before anything else is."""


def killing(real: Callable[..., Any]) -> Callable[..., Any]:
    def die(*args: Any, **more: Any) -> Any:
        topic = next((one for one in args if getattr(one, "name", one) == TOPIC), None)
        if topic is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **more)

    return die


TOPIC = "orders"

if __name__ == "__main__":
    holder, name = STEPS[sys.argv[1]]
    setattr(holder, name, killing(getattr(holder, name)))
    main(sys.argv[4:])
