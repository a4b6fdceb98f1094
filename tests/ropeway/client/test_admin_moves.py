"""Which queues move so that brokers have as many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.client import Admin, admin_moves
from ropeway.client.admin_moves import moves
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import PATIENT, scenario, send_all

COUNTS = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@given(COUNTS, st.integers(0, 3))
def test_brokers_differ_by_one_queue_after_the_fewest_moves(
    counts: list[int], gone: int
) -> None:
    places, number = {}, 0
    for broker, count in enumerate(counts):
        places[f"b{broker}"] = list(range(number, number + count))
        number += count
    running = [f"b{broker}" for broker in range(gone, len(counts))] or ["b9"]
    planned = moves("orders", places, running)
    now = {name: list(places.get(name, [])) for name in {*places, *running}}
    for one in planned:
        assert (now[one.giver].pop(), len(now[one.giver])) == (
            one.partition,
            one.from_id,
        )
        assert len(now[one.giver]) >= 1
        assert len(now[one.taker]) == one.to_id
        now[one.taker].append(one.partition)
    sizes = [len(now[name]) for name in running]
    assert max(sizes) - min(sizes) <= 1
    before = sorted((len(places.get(name, ())) for name in running), reverse=True)
    surplus = [
        max(0, had - has)
        for had, has in zip(before, sorted(sizes, reverse=True), strict=True)
    ]
    assert len(planned) == sum(surplus)
    assert all(now[name] == places[name] for name in places if name not in running)


def test_nothing_moves_where_no_broker_runs() -> None:
    assert moves("orders", {"a": [0, 1]}, []) == []


@scenario
async def test_queues_of_an_embedded_log_stay(ropeway_gateway, topic):
    await send_all(ropeway_gateway.name_server, topic, [b"x"])
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        for dry_run in (True, False):
            with pytest.raises(AdminError, match="queues move between brokers on"):
                async for _ in admin_moves.rebalance(admin, topic, dry_run=dry_run):
                    pass
