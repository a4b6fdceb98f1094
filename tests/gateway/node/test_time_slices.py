"""Topics in slices, so that nobody waits for all of them."""

from __future__ import annotations

from ropeway.gateway.node.time_slices import QUEUES_AT_ONCE, slices


def test_slices_have_all_topics_in_order_and_hardly_more_queues_than_allowed():
    queues = {f"t{number}": [0] * (number % 9) for number in range(2000)}
    found = list(slices(queues))
    assert [name for names in found for name in names] == list(queues)
    sizes = [sum(len(queues[name]) for name in names) for names in found]
    assert max(sizes) < QUEUES_AT_ONCE + 9
    assert min(sizes[:-1]) >= QUEUES_AT_ONCE
    assert len(found) > 5


def test_without_topics_there_is_nothing_in_them():
    assert [name for names in slices({}) for name in names] == []
