"""Counts what was collected, so that no test vanishes: see `counts.toml`."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests import chance
from tests.clients.programs import Client

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Table = dict[str, dict[str, int]]

COUNTED = pytest.StashKey[Table]()
SLACK = 0.1
"""How far the table may lag behind, as a part of what there is."""
SLACK_TESTS = 20
"""The least that it may lag behind, for small numbers."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Count before anything is left out by its marks or its name."""
    whole = [str(config.rootpath / one) for one in config.getini("testpaths")]
    given = [str(config.invocation_params.dir / one) for one in config.args]
    if given == whole:
        config.stash[COUNTED] = counted(items)


def counted(items: list[pytest.Item]) -> Table:
    """How many tests there are in each tier, of each client, in each folder."""
    tiers: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for item in items:
        tiers.update(chance.tiers(item) or ["quick"])
        folders[_folder(item.path, item.config.rootpath)] += 1
        params = getattr(item, "callspec", None)
        for value in params.params.values() if params else ():
            if isinstance(value, Client):
                clients[value.name] += 1
    return {"tiers": dict(tiers), "clients": dict(clients), "folders": dict(folders)}


@cache
def _folder(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "tests").parts[:-1]
    return "/".join(parts[:2]) or "."


def differences(table: Mapping[str, Mapping[str, int]], found: Table) -> list[str]:
    """What the table says of tests that are not there, or does not say of new ones."""
    wrong = []
    for part, numbers in found.items():
        for name in sorted({*table[part], *numbers}):
            wanted, count = table[part].get(name, 0), numbers.get(name, 0)
            if count < wanted:
                gone = f"{wanted - count} tests are gone"
                wrong.append(f"[{part}] {name}: {count} of {wanted}; {gone}")
            elif count > wanted + max(SLACK_TESTS, SLACK * count):
                wrong.append(f'[{part}] {name}: write "{name}" = {count} for {wanted}')
    return wrong
