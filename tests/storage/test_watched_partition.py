"""Partitions of each log tell those who watch them, until they are deleted."""

from __future__ import annotations

import pytest

from ropeway.storage.api import NoSuchPartitionError
from ropeway.storage.watched_partition import WatchedPartition


def test_who_watches_is_told_and_may_stop_while_it_is() -> None:
    partition = WatchedPartition("orders", 3)
    told = []

    def once() -> None:
        told.append("once")
        partition.unwatch(once)

    def always() -> None:
        told.append("always")

    partition.watch(once)
    partition.watch(always)
    partition.grown()
    partition.grown()
    assert told == ["once", "always", "always"]


def test_nobody_watches_what_was_deleted() -> None:
    partition = WatchedPartition("orders", 3)
    partition.gone = True
    with pytest.raises(NoSuchPartitionError, match="partition 3 of topic orders"):
        partition.watch(print)
