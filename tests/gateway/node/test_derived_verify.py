"""Stores of a node that does not run, held against its log."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.lite.store import Store as LiteStore
from ropeway.gateway.node import names
from ropeway.gateway.node.derived_store import Checkpoint
from ropeway.gateway.node.derived_verify import verify
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.pop.store import Store as PopStore
from tests.contracts.derived_store import harmed

if TYPE_CHECKING:
    from pathlib import Path

ENDS = {(names.POP_TOPIC, 0): 9, (names.TIMER_TOPIC, 0): 9, ("chats", 3): 9}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with all stores, each at 9."""
    at = Checkpoint(9, 1)
    with closing(PopStore.open(tmp_path / "pop")) as pops:
        pops.apply([], at)
    with closing(Index.open(tmp_path / "timer")) as timers:
        timers.add([], [], at)
    with closing(LiteStore.open(tmp_path / "lite")) as lites:
        lites.note("chats", 0, [], [], at)
    return tmp_path


def files_of(data: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_stores_that_fit_the_log_are_not_worth_a_line(data: Path) -> None:
    before = files_of(data)
    assert verify(data, ENDS) == []
    assert files_of(data) == before, "nothing is changed"


@pytest.mark.parametrize(
    ("name", "topic"),
    [("pop", names.POP_TOPIC), ("timer", names.TIMER_TOPIC), ("lite", "chats")],
)
def test_a_store_ahead_of_the_log_is_named_with_both_ends(
    data: Path, name: str, topic: str
) -> None:
    ends = {place: 8 if place[0] == topic else 9 for place in ENDS}
    (line,) = verify(data, ends)
    assert line == (
        f"{data / name} is ahead of the log: it has followed {topic} to 9, and the log "
        "ends at 8; it is made again from the log"
    )


def test_a_store_that_cannot_be_read_is_named(data: Path) -> None:
    harmed(data / "timer" / "CURRENT", "emptied")
    (line,) = verify(data, ENDS)
    assert line.startswith(str(data / "timer"))
    assert line.endswith("it is made again from the log")


def test_a_directory_without_stores_has_nothing_to_say(tmp_path: Path) -> None:
    assert verify(tmp_path, ENDS) == []
