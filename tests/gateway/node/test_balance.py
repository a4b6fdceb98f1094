"""When a queue moves by load unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ropeway.client.admin_loads import LoadMove, candidates
from ropeway.client.admin_moves import Move
from ropeway.gateway.node.balance import Balance
from ropeway.gateway.pulsar_config import BalanceConfig

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = BalanceConfig(by_load="on", hits=3, grace_ms=100_000)


class Clock:
    """Seconds that pass when they are told to."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def planned(giver: str = "a", taker: str = "b", *partitions: int) -> list[LoadMove]:
    return [
        LoadMove(Move("orders", giver, 1, taker, 0, one), 3.0, 9.0, 1.0, 5.0)
        for one in partitions or (7,)
    ]


def test_a_move_is_due_when_one_broker_was_too_loaded_several_times_in_a_row() -> None:
    balance = Balance(CONFIG, Clock())
    assert [balance.due(planned()) for _ in range(3)] == [[], [], planned()]
    assert balance.measured == 3


def test_an_even_load_or_another_broker_between_begins_anew() -> None:
    balance = Balance(CONFIG, Clock())
    for between in ([], planned("b", "a")):
        assert balance.due(planned()) == balance.due(planned()) == []
        assert balance.due(between) == []
        assert balance.due(planned()) == balance.due(planned()) == []
        assert balance.due([]) == []


def test_after_a_move_all_is_measured_anew_and_the_queue_stays() -> None:
    clock = Clock()
    balance = Balance(CONFIG, clock)
    for _ in range(3):
        due = balance.due(planned())
    balance.note(due[0].move)
    assert balance.moves == 1
    back = planned("b", "a", 7, 8)
    assert [balance.due(back) for _ in range(3)] == [[], [], back[1:]]
    clock.now_s += CONFIG.grace_ms / 1000
    assert balance.due(back) == back


def test_what_was_measured_is_forgotten_while_another_node_balances() -> None:
    balance = Balance(CONFIG, Clock())
    balance.due(planned())
    balance.due(planned())
    balance.forget()
    assert balance.due(planned()) == []


def moves_of(
    loads: Callable[[int], list[float]], rounds: int
) -> list[tuple[int, str, str, int]]:
    """Which queues of two brokers move when, by what is sent to them at a time."""
    clock = Clock()
    balance = Balance(CONFIG, clock)
    places = {"a": [0, 1, 2], "b": [3, 4, 5]}
    made = []
    for number in range(rounds):
        clock.now_s = number * 10.0
        sent = loads(number)
        rates = {
            "orders": {
                broker: [sent[partition] for partition in partitions]
                for broker, partitions in places.items()
            }
        }
        if due := balance.due(candidates(rates, {"orders": places}, ["a", "b"])):
            move = due[0].move
            assert places[move.giver].pop() == move.partition
            places[move.taker].append(move.partition)
            balance.note(move)
            made.append((number, move.giver, move.taker, move.partition))
    return made


@given(st.lists(st.integers(0, 50).map(float), min_size=6, max_size=6))
def test_under_a_lasting_load_no_queue_moves_twice(sent: list[float]) -> None:
    made = moves_of(lambda _: sent, 100)
    partitions = [partition for *_, partition in made]
    assert len(partitions) == len(set(partitions)) <= 5


@given(st.integers(1, 2), st.lists(st.integers(0, 50).map(float), min_size=6))
def test_a_load_that_changes_sides_sooner_than_it_is_believed_moves_nothing(
    every: int, sent: list[float]
) -> None:
    other = [*sent[3:6], *sent[:3]]
    even = [1.0] * 6

    def loads(number: int) -> list[float]:
        return (sent[:6], even, other, even)[number // every % 4]

    assert moves_of(loads, 60) == []


@given(st.lists(st.lists(st.integers(0, 50).map(float), min_size=6, max_size=6)))
def test_whatever_the_load_does_a_queue_stays_after_a_move(
    sent: list[list[float]],
) -> None:
    last: dict[int, int] = {}
    for number, _, _, partition in moves_of(lambda number: sent[number], len(sent)):
        if partition in last:
            assert (number - last[partition]) * 10 >= CONFIG.grace_ms / 1000
        last[partition] = number
