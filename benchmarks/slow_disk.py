"""`ropeway` on a disk that is slow from time to time: a fault, injected.

    $ python -m benchmarks.slow_disk FILE 500 serve --data DIRECTORY ...

While FILE is there, each write and each sync takes 500 milliseconds longer.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ropeway.gateway.cli.main import main as ropeway

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def slowed(
    call: Callable[..., T], while_there: Path, seconds: float
) -> Callable[..., T]:
    """A call that takes so much longer while a file is there."""

    def wait_and_call(*given: object) -> T:
        if while_there.exists():
            time.sleep(seconds)
        return call(*given)

    return wait_and_call


def main() -> None:
    while_there, seconds = Path(sys.argv.pop(1)), int(sys.argv.pop(1)) / 1000
    os.pwritev = slowed(os.pwritev, while_there, seconds)
    os.fdatasync = slowed(os.fdatasync, while_there, seconds)
    ropeway()


if __name__ == "__main__":
    main()
