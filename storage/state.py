"""The replicated state of a broker: the contract. Small facts that all its nodes share.

A fact is a key and a text. One node *leads*: it alone writes. The others follow: what
they read is what the leader has written, a moment later.

Laws, held by tests/contracts/state.py for every backend:

* Reads and writes are memory operations. The leader sees its own writes at once.
* What was put is kept after `flush`, or at most one flush interval later; a crash in
  between takes the last puts back, those of one key from the newest on.
* Followers see the values of one key in the order of the puts, and may miss some that
  were soon replaced. Between keys no order is promised.
* Taking over deposes the leader, whether it answers or not. Once `take_over` has
  returned, all that the old leader flushed is here, nothing that it writes counts any
  more, and every moment at which the old leader could hold itself for the leader has
  passed: its `held_until_s` is over.
* A node that was deposed follows. What it put and had not flushed is taken back, and
  its watchers are told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Changed = Callable[[str, str | None], None]
"""Called with a key and its new value; None where the key is gone."""

Held = Callable[[], float]
"""Tells until when no other node can lead, by `time.monotonic`."""


def never() -> float:
    """Be sure of it at no time; a `Held`."""
    return 0.0


Deposed = Callable[[str], None]
"""Called with the reason, as a sentence for a log, when the lead is lost."""


class State(Protocol):
    """Facts by key. All calls come from one event loop's thread."""

    @property
    def leading(self) -> bool:
        """Whether this node writes, as far as it knows."""

    @property
    def held_until_s(self) -> float:
        """Until then, by `time.monotonic`, no other node can lead; 0 for a follower.

        It moves on by itself while the node leads and the storage answers. A leader
        that did not run for a while finds it in the past, and must take nobody's word
        for being the leader, its own included, until it has moved on.
        """

    def get(self, key: str) -> str | None:
        """The value of a key; None where it has none."""

    def items(self, prefix: str) -> list[tuple[str, str]]:
        """All keys that begin so, with their values, sorted; looks at every key."""

    def put(self, key: str, value: str | None) -> None:
        """Set a key's value; None deletes the key.

        Raises:
            LogUnavailableError: this node does not lead, or the state is closed.
            ValueError: the key is not one that can be kept, or the fact is too large.
        """

    def watch(self, prefix: str, changed: Changed) -> None:
        """Call `changed` for each change of such a key that this node did not put.

        That is what a leader wrote that this node follows, and what is taken back
        when this node is deposed. Watchers must not raise.
        """

    async def flush(self) -> None:
        """Return when all puts so far are kept.

        Raises:
            LogUnavailableError: that is not known; they are tried on while this node
                leads, and lost when it was deposed.
        """

    async def take_over(self) -> None:
        """Become the leader, whoever is it now. A leader stays it.

        Of nodes that take over at once, at most one comes to lead, perhaps none: they
        shall be told from outside which one is to lead.

        Raises:
            LogUnavailableError: the storage does not answer or refuses, or another
                node was faster.
            LogDamagedError: what is stored cannot be trusted.
        """

    async def give_up(self) -> None:
        """Flush, and follow; the next leader needs to wait for nothing.

        Raises:
            LogUnavailableError: not all puts could be kept. It follows all the same.
        """

    async def close(self) -> None:
        """Give up, and release every resource. Twice is fine."""
