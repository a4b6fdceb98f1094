"""Places that everybody may take: nobody has more of them than are left.

So who comes always finds some, whatever others have taken: one alone may take half,
two a third each. It is the dynamic threshold of shared-memory switches (Choudhury and
Hahne, 1998).
"""

from __future__ import annotations

from collections import Counter


def is_within(own: int, taken: int, most: int) -> bool:
    """Whether one more may be taken.

    Args:
        own: What who asks has already.
        taken: What all have.
        most: What there is.
    """
    return taken < most and own <= most - taken


class FairShare:
    """Counts places that are taken.

    Args:
        most: How many there are.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._own: Counter[str] = Counter()
        self.taken = 0

    def take(self, whose: str) -> bool:
        """Take a place; False where there is none for whom it would be."""
        if not is_within(self._own[whose], self.taken, self.most):
            return False
        self._own[whose] += 1
        self.taken += 1
        return True

    def leave(self, whose: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self._own[whose] -= 1
        if not self._own[whose]:
            del self._own[whose]
