"""How long requests of other nodes were on their way, without clocks that agree.

Of each link the least difference that was seen lately between the sender's monotonic
clock and ours stands for a way that takes no time. Whatever a request comes later than
that, it was on its way longer: where a node stood still, or the network did. Clocks
need not agree, only run at about one pace for as long as "lately" is.
"""

from __future__ import annotations

from collections import OrderedDict

MAX_LINKS = 1024
"""Nodes have one link to each other; those of links that were lost go first."""
WINDOW_MS = 600_000
"""What was seen in this window or the last one counts: clocks whose paces differ by one
in 10,000 are 0.12 s further apart at its end."""


class TransitTime:
    """The least difference of clocks for each link."""

    def __init__(self) -> None:
        self._links: OrderedDict[str, tuple[int, int, int]] = OrderedDict()
        """For each the number of a window, and the least in that and before it."""

    def took_ms(self, link: str, sent_ms: int, now_ms: int) -> int:
        """How much longer than the fastest a request was on its way.

        Args:
            link: Which connection of which node.
            sent_ms: When it was sent, by the sender's monotonic clock.
            now_ms: When it came, by ours.
        """
        apart_ms = now_ms - sent_ms
        window = now_ms // WINDOW_MS
        seen, least_ms, before_ms = self._links.pop(link, (window, apart_ms, apart_ms))
        if window > seen:
            # Of windows without a request nothing is known.
            before_ms = least_ms if window == seen + 1 else apart_ms
            least_ms = apart_ms
        least_ms = min(least_ms, apart_ms)
        self._links[link] = window, least_ms, before_ms
        if len(self._links) > MAX_LINKS:
            self._links.popitem(last=False)
        return apart_ms - min(least_ms, before_ms)
