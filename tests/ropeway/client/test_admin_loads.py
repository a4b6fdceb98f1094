"""Which queue moves to a broker with less to do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.client.admin_loads import THRESHOLD, Rates, candidates

QUEUES = st.lists(st.integers(0, 100).map(float), max_size=4)
RATES = st.dictionaries(
    st.sampled_from("xyz"),
    st.fixed_dictionaries({"a": QUEUES, "b": QUEUES, "c": QUEUES}),
)
RUNNING = ["a", "b", "c"]


def places(rates: Rates) -> dict[str, dict[str, list[int]]]:
    return {
        topic: {name: list(range(len(found))) for name, found in brokers.items()}
        for topic, brokers in rates.items()
    }


def loads(rates: Rates) -> dict[str, float]:
    return {
        name: sum(sum(brokers[name]) for brokers in rates.values()) for name in RUNNING
    }


@given(RATES)
def test_moves_under_an_even_load_end_and_each_leaves_the_larger_with_less(
    rates: Rates,
) -> None:
    queues = sum(len(one) for brokers in rates.values() for one in brokers.values())
    squares = sum(load * load for load in loads(rates).values())
    for _ in range(1000):
        planned = candidates(rates, places(rates), RUNNING)
        if not planned:
            break
        best = planned[0]
        move, before = best.move, loads(rates)
        assert before[move.giver] == best.giver_per_s == max(before.values())
        assert before[move.taker] == best.taker_per_s == min(before.values())
        assert best.giver_per_s > best.average_per_s * (1 + THRESHOLD)
        rates[move.topic][move.taker].append(rates[move.topic][move.giver].pop())
        assert rates[move.topic][move.giver]
        after = loads(rates)
        assert max(after[move.giver], after[move.taker]) < best.giver_per_s
        less = sum(load * load for load in after.values())
        assert less < squares
        squares = less
    else:
        raise AssertionError("moves do not end")
    assert queues == sum(
        len(one) for brokers in rates.values() for one in brokers.values()
    )


def test_a_balanced_cluster_makes_no_moves() -> None:
    rates = {"x": {"a": [50.0, 58.0], "b": [50.0, 50.0], "c": [46.0, 46.0]}}
    assert candidates(rates, places(rates), RUNNING) == []
    assert candidates({}, {}, RUNNING) == candidates({}, {}, []) == []


def test_a_queue_that_is_hardly_used_does_not_move() -> None:
    rates = {"x": {"a": [9.0, 0.5], "b": [], "c": []}}
    assert candidates(rates, places(rates), RUNNING) == []
    assert len(candidates(rates, places(rates), RUNNING, 0.5)) == 1


def test_the_queue_moves_that_evens_loads_out_the_most() -> None:
    rates: Rates = {
        "x": {"a": [1.0, 90.0], "b": [], "c": [20.0]},
        "y": {"a": [1.0, 45.0], "b": [], "c": []},
    }
    planned = candidates(rates, places(rates), RUNNING)
    assert [one.move.topic for one in planned] == ["x", "y"]
    assert {(one.move.giver, one.move.taker) for one in planned} == {("a", "b")}
    first = planned[0]
    assert max(first.giver_per_s - first.per_s, first.taker_per_s + first.per_s) == 90
