"""What no log can hold is refused before anything is made."""

from __future__ import annotations

import pytest

from ropeway.storage.api import BeginsElsewhereError, LogLimitError
from ropeway.storage.beginnings import refuse_impossible, refuse_other


def test_numbers_and_offsets_out_of_bounds_are_named() -> None:
    refuse_impossible("orders", [0, 1023], {0: 0, 1023: 99}, 99)
    for partitions, begins, said in (
        ([-1], {}, "partition -1 of topic orders; allowed: 0 to 1023"),
        ([1024], {}, "partition 1024 of topic orders; allowed: 0 to 1023"),
        ([0], {1024: 0}, "partition 1024 of topic orders; allowed: 0 to 1023"),
        ([0], {0: -1}, "partition 0 of .* begin at offset -1; allowed: 0 to 99"),
        ([0], {0: 100}, "partition 0 of .* begin at offset 100; allowed: 0 to 99"),
    ):
        with pytest.raises(LogLimitError, match=said):
            refuse_impossible("orders", partitions, begins, 99)


def test_where_a_partition_begins_never_changes() -> None:
    refuse_other("orders", 3, 7, 7)
    with pytest.raises(BeginsElsewhereError, match="begins at offset 7; asked for: 8"):
        refuse_other("orders", 3, 7, 8)
