"""One seed for all chance in a run: printed, shared by its processes, and repeatable.

The order of quick tests, fresh examples of property tests and fresh rounds of fuzzers
come from it. Beside the fresh ones stand fixed ones, which are the same on each run.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, TypeVar

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

NAME = "ROPEWAY_SEED"
"""The environment variable that repeats a run's chance."""
MOST = 1 << 32
FIXED = 20
"""The seed of what is the same on each run."""
TIERS = ("jvm", "go", "cpp", "server", "containers", "slow")
"""Marks of tests that are not in the quick tier."""

# The fixed examples, however slow the machine is. The fresh ones are as many.
hypothesis.settings.register_profile(
    "ropeway",
    derandomize=True,
    max_examples=50,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ropeway")


def seed() -> int:
    """The seed of this run."""
    return int(os.environ[NAME])


def fixed_and_fresh(test: Callable[..., T]) -> Callable[..., T]:
    """Run a fuzzer twice: its parameter `seed` is `FIXED`, and that of the run."""
    fresh = seed()
    return pytest.mark.parametrize("seed", [FIXED, fresh], ids=["fixed", "fresh"])(test)


def pytest_configure() -> None:
    # Not above: pytest rewrites the assertions of plugins that nobody imported.
    from tests.builds import cache

    # What it knows of sources and of characters is for the next clone as well.
    set_hypothesis_home_dir(cache() / "hypothesis")
    given = os.environ.setdefault(NAME, str(random.SystemRandom().randrange(MOST)))
    if not (given.isascii() and given.isdecimal() and int(given) < MOST):
        raise pytest.UsageError(f"{NAME} is {given!r}; allowed: 0 to {MOST - 1}")


def pytest_report_header() -> str:
    return f"seed: {NAME}={seed()} repeats the order and the examples"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Try a property on the examples of this run; the fixed ones follow as usual."""
    test = pyfuncitem.function
    if not hypothesis.is_hypothesis_test(test):
        return
    names = pyfuncitem._fixtureinfo.argnames
    before = test._hypothesis_internal_use_seed
    hypothesis.seed(seed())(test)
    try:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    finally:
        test._hypothesis_internal_use_seed = before


def shuffle(
    items: list[pytest.Item], group: Callable[[pytest.Item], Hashable]
) -> list[pytest.Item]:
    """The items, with quick ones in another order behind those that are not quick.

    Groups stay together, and so do the tests of a class, for what they share.
    """
    chance = random.Random(seed())
    slow: list[pytest.Item] = []
    quick: list[pytest.Item] = []
    for one in items:
        (slow if tiers(one) else quick).append(one)
    mixed = {group(one) for one in slow}
    together = _shuffled(
        quick, group, chance, lambda part: _shuffled(part, _class, chance)
    )
    # What shares a group with slow tests stays with them.
    return [
        *slow,
        *(one for one in together if group(one) in mixed),
        *(one for one in together if group(one) not in mixed),
    ]


def _shuffled(
    items: list[pytest.Item],
    key: Callable[[pytest.Item], Hashable],
    chance: random.Random,
    inside: Callable[[list[pytest.Item]], list[pytest.Item]] | None = None,
) -> list[pytest.Item]:
    parts: dict[Hashable, list[pytest.Item]] = {}
    for one in items:
        parts.setdefault(key(one), []).append(one)
    each = list(parts.values())
    chance.shuffle(each)
    for part in each:
        if inside is None:
            chance.shuffle(part)
    return [one for part in each for one in (inside(part) if inside else part)]


def _class(item: pytest.Item) -> Hashable:
    """The class of a test; a function is alone."""
    assert isinstance(item, pytest.Function)
    return item.cls or item


def tiers(item: pytest.Item) -> list[str]:
    """Which tiers beside the quick one a test is in, by its marks."""
    marks = {mark.name for mark in item.iter_markers()}
    return [name for name in TIERS if name in marks]
