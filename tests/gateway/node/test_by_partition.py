"""Topics are found by the numbers of their partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ropeway.gateway.node.by_partition import ByPartition
from ropeway.gateway.node.names import NOT_FOR_READING


def served(name: str, *numbers: int) -> Any:
    partitions = [SimpleNamespace(number=number) for number in numbers]
    return SimpleNamespace(name=name, partitions=partitions)


def test_a_topic_is_found_by_each_of_its_numbers_until_it_is_discarded():
    index = ByPartition()
    b, a, retry = served("b", 1, 2), served("a", 2), served("%RETRY%g", 2)
    for one in (b, a, retry, served(min(NOT_FOR_READING), 2)):
        index.add(one)
    assert index.find(1, retry=False) == [b]
    assert index.find(2, retry=False) == [a, b]
    assert index.find(2, retry=True) == [retry]
    assert index.find(3, retry=False) == []
    index.discard(b)
    assert index.find(1, retry=False) == []
    assert index.find(2, retry=False) == [a]
    index.clear()
    assert index.find(2, retry=True) == []
