"""A partition's entries in a row, over all its ledgers.

That packs are found is tested where they are read: test_reading, test_times.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.pack_search import Path

ledgers = st.lists(st.integers(0, 20), min_size=1, max_size=8).map(
    lambda entries: [(3 + 5 * i, count) for i, count in enumerate(entries)]
)


@given(ledgers)
def test_numbers_and_positions_are_one_to_one(
    given_ledgers: list[tuple[int, int]],
) -> None:
    path = Path(given_ledgers)
    positions = [Position(ledger, i) for ledger, n in given_ledgers for i in range(n)]
    assert path.total == len(positions)
    assert [path.position(number) for number in range(path.total)] == positions
    assert [path.number(*position) for position in positions] == list(range(path.total))


@given(ledgers, st.integers(0, 60), st.integers(0, 60))
def test_any_position_has_a_number_that_is_there(
    given_ledgers: list[tuple[int, int]], ledger: int, entry: int
) -> None:
    path = Path(given_ledgers)
    assert 0 <= path.number(ledger, entry) <= max(path.total - 1, 0)
