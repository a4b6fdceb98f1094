"""Wrong attempts to sign in, counted so that guessing is slow.

They count for a name from an address, and for an address whatever the names: so nobody
keeps a principal out who comes from elsewhere, and nobody guesses many names from one
place. After the first few each wrong one doubles the time until the next is looked at.
What is not looked at tells nothing: not even the right password gets in meanwhile.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.http.params import RefusedError
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Callable

FREE = 5
"""So many wrong attempts of a name from an address cost nothing: people mistype."""
FREE_OF_ADDRESS = 20
"""Likewise of an address, behind which there may be many people."""
LONGEST_S = 60.0
"""The pause doubles up to this: 1,440 guesses a day."""
FORGET_S = 900.0
"""Without a wrong attempt for so long, all are forgotten."""
MOST = 20_000
"""Names and addresses that are remembered, of some 300 bytes each; the one whose last
attempt is longest ago is forgotten."""
_MOST_NAME = 255


class _Wrong(NamedTuple):
    times: int
    last_s: float


class Attempts:
    """Wrong attempts of late.

    Args:
        clock_s: Seconds that only go forward.
    """

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._wrong: OrderedDict[tuple[str, ...], _Wrong] = OrderedDict()
        """The last one last."""

    def __len__(self) -> int:
        return len(self._wrong)

    def begin(self, name: str, address: str) -> None:
        """Count an attempt as wrong, before it is known whether it is.

        So many at the same time are not one.

        Raises:
            RefusedError: There were too many, and it is not looked at.
        """
        now_s = self._clock_s()
        left_s = max(
            self._left_s(key, free, now_s) for key, free in _keys(name, address)
        )
        if left_s > 0:
            raise RefusedError(
                f"too many wrong attempts from {address}; try again in "
                f"{math.ceil(left_s)} s",
                429,
            )
        for key, _ in _keys(name, address):
            self._wrong[key] = _Wrong(self._count(key, now_s) + 1, now_s)
            self._wrong.move_to_end(key)
        while len(self._wrong) > MOST:
            self._wrong.popitem(last=False)

    def succeed(self, name: str, address: str) -> None:
        """An attempt was right: those of the name from there are forgotten.

        Those of the address are not, or whoever has an account could guess others'
        passwords in between; but this one was none of them.
        """
        (of_name, _), (of_address, _) = _keys(name, address)
        self._wrong.pop(of_name, None)
        wrong = self._wrong.get(of_address)
        if wrong is not None:
            self._wrong[of_address] = wrong._replace(times=max(0, wrong.times - 1))

    def _count(self, key: tuple[str, ...], now_s: float) -> int:
        wrong = self._wrong.get(key)
        if wrong is None or now_s - wrong.last_s >= FORGET_S:
            return 0
        return wrong.times

    def _left_s(self, key: tuple[str, ...], free: int, now_s: float) -> float:
        beyond = self._count(key, now_s) - free
        if beyond < 0:
            return 0.0
        # A power of a bounded number: counts may be large.
        pause_s = min(LONGEST_S, 2.0 ** min(beyond, 10))
        return self._wrong[key].last_s + pause_s - now_s


def _keys(name: str, address: str) -> tuple[tuple[tuple[str, ...], int], ...]:
    network = host_port.network(address)
    return ((network, name[:_MOST_NAME]), FREE), ((network,), FREE_OF_ADDRESS)
