"""File descriptors are parted, so that files can be opened whoever connects."""

from __future__ import annotations

import resource

import pytest

from ropeway.gateway import open_files
from ropeway.gateway.config import Config, HttpConfig, LimitsConfig
from ropeway.gateway.open_files import Room, room

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("allowed", "config", "expected"),
    [
        (1024, Config(), Room(768, 384, 0)),
        (1024, Config(http=HttpConfig()), Room(576, 288, 192)),
        (256, Config(http=HttpConfig()), Room(96, 48, 32)),
        (20, Config(http=HttpConfig()), Room(6, 3, 2)),
        (INFINITE, Config(http=HttpConfig()), Room(100_000, 1024, 256)),
        (1 << 20, Config(limits=LimitsConfig(connections=10)), Room(10, 5, 0)),
    ],
)
def test_connections_leave_descriptors_to_files(
    monkeypatch: pytest.MonkeyPatch, allowed: int, config: Config, expected: Room
):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, INFINITE))
    assert room(config) == expected


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1024, 4096, (4096, 4096)),
        (1024, INFINITE, (1 << 20, INFINITE)),
        (1024, 1024, None),
        (INFINITE, INFINITE, None),
    ],
)
def test_a_node_allows_itself_what_it_may(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted
):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: set_to.append(pair))
    open_files.raise_limit()
    assert set_to == ([wanted] if wanted else [])
