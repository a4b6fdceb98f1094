"""Budget: who gets on stays, who does not goes when there is too much."""

from __future__ import annotations

from ropeway.gateway.budget import Budget


class Client:
    address = "127.0.0.1:1"

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True
        self.budget.leave(self)


def test_who_has_not_got_on_for_longest_goes_when_there_is_too_much() -> None:
    budget = Budget(100)
    slow, quick, late = (Client(budget) for _ in range(3))
    budget.hold(slow, 40)
    budget.hold(quick, 40)
    budget.let_go(quick, 10)
    budget.hold(late, 30)
    assert not any(one.aborted for one in (slow, quick, late))
    budget.hold(quick, 1)
    assert [one.aborted for one in (slow, quick, late)] == [True, False, False]
    assert budget.used_bytes == 61


def test_who_gets_on_outlives_who_came_later() -> None:
    budget = Budget(100)
    first, second = Client(budget), Client(budget)
    budget.hold(first, 50)
    budget.hold(second, 50)
    budget.let_go(first, 10)
    budget.hold(first, 20)
    assert (first.aborted, second.aborted) == (False, True)


def test_one_alone_may_not_hold_more_either() -> None:
    budget = Budget(100)
    client = Client(budget)
    budget.hold(client, 101)
    assert client.aborted
    assert budget.used_bytes == 0


def test_who_was_closed_gives_nothing_back_twice() -> None:
    budget = Budget(100)
    client = Client(budget)
    budget.hold(client, 30)
    budget.leave(client)
    budget.let_go(client, 30)
    assert budget.used_bytes == 0
