"""Segments read block by block: whole blocks, damage, and zeros behind them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import Record
from ropeway.storage.file.block import Encoded, Run, lay_out
from ropeway.storage.file.scan import Damage, blocks, mapped, nonzero_end

if TYPE_CHECKING:
    from pathlib import Path

BASE = 5000
LOG_ID = 8


def segment(count: int) -> tuple[bytes, list[int]]:
    """So many blocks, each synced up to where it begins, and where they begin."""
    data = b""
    places = []
    for number in range(count):
        run = Run(SimpleNamespace(ordinal=0, key_seed=0), number)  # type: ignore[arg-type]
        run.appends = [([Record(b"%d" % number, 0, ())], 1, print)]
        run.count = 1
        place = len(data)
        made = Encoded(*lay_out([run], BASE, place, LOG_ID, BASE + place, 1))
        places.append(place)
        data += made.header + made.body
    return data, places


def scanned(path: Path, data: bytes) -> list[int | Damage]:
    """The places of the blocks in a file of these bytes, and its damages."""
    path.write_bytes(data)
    with mapped(path) as memory, memoryview(memory) as view:
        return [
            found if isinstance(found, Damage) else found[0]
            for found in blocks(memory, view, BASE, LOG_ID)
        ]


@pytest.mark.parametrize("zeros", [0, 1, 200, 70_000])
def test_zeros_behind_the_last_block_are_no_damage(tmp_path: Path, zeros: int) -> None:
    data, places = segment(3)
    assert scanned(tmp_path / "segment", data + bytes(zeros)) == places


def test_a_segment_that_was_never_written_to_has_nothing(tmp_path: Path) -> None:
    assert scanned(tmp_path / "segment", bytes(1000)) == []


def test_damage_tells_how_much_follows_and_what_was_synced(tmp_path: Path) -> None:
    data, places = segment(4)
    bad = bytearray(data)
    bad[places[1] + 20] ^= 1
    assert scanned(tmp_path / "segment", bytes(bad)) == [
        places[0],
        Damage(places[1], intact=2, durable=BASE + places[3]),
        places[2],
        places[3],
    ]


@pytest.mark.parametrize("zeros", [0, 70_000])
def test_damage_at_the_end_has_nothing_behind_it(tmp_path: Path, zeros: int) -> None:
    data, places = segment(2)
    torn = data[: places[1] + 70] + bytes(zeros)
    assert scanned(tmp_path / "segment", torn) == [
        places[0],
        Damage(places[1], intact=0, durable=0),
    ]


@pytest.mark.parametrize("end", [0, 1, 5, 65_535, 65_536, 65_537, 70_000])
def test_the_last_byte_that_is_not_zero_is_found(tmp_path: Path, end: int) -> None:
    path = tmp_path / "segment"
    path.write_bytes((bytes(end - 1) + b"\1" if end else b"").ljust(70_000, b"\0"))
    with mapped(path) as data:
        assert nonzero_end(data, 0) == end
        assert nonzero_end(data, 66_000) == max(end, 66_000)
