"""Cuts a failing plan down: fewer faults, fewer clients, less time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from tests.simulation.plan import CLIENTS
from tests.simulation.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.simulation.plan import Plan

MOST_RUNS = 300
"""Then the best plan so far is the answer."""


def rules(violations: list[str]) -> set[str]:
    """Which rules were broken: the first word of each violation."""
    return {one.partition(":")[0] for one in violations}


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans that do a little less, those that do much less first."""
    size = len(plan.faults)
    part = size
    while part:
        for at in range(0, size, part):
            yield structs.replace(
                plan, faults=plan.faults[:at] + plan.faults[at + part :]
            )
        part //= 2
    for field in CLIENTS:
        for count in range(getattr(plan, field)):
            yield structs.replace(plan, **{field: count})
    last_s = max((one.at_s for one in plan.faults), default=0.0)
    for load_s in (last_s + 0.1, plan.load_s * 0.6):
        if load_s < plan.load_s * 0.95:
            yield structs.replace(plan, load_s=round(load_s, 3))


def minimised(
    plan: Plan, bug: Callable[[], AbstractContextManager[object]] | None = None
) -> Plan:
    """The smallest plan found that breaks one of the rules that a plan breaks.

    Args:
        plan: One that fails; any other is returned as it is.
        bug: What makes the product wrong, where that is on purpose.
    """
    broken = rules(run(plan, bug=bug).violations)
    runs = 1
    goes_on = bool(broken)
    while goes_on:
        goes_on = False
        for one in smaller(plan):
            runs += 1
            if runs > MOST_RUNS:
                return plan
            if broken & rules(run(one, bug=bug).violations):
                plan, goes_on = one, True
                break
    return plan
