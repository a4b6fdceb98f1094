"""Opening an index: what is damaged is made anew, and what is in use is not touched."""

from __future__ import annotations

import gc
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.lite.store import Store as LiteStore
from ropeway.gateway.node import rocks
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.pop.store import Store
from tests.copies import killed_copy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPENERS: list[Any] = [Index.open, Store.open, LiteStore.open]


@pytest.mark.parametrize("opener", OPENERS)
def test_one_that_is_in_use_is_left_alone(tmp_path: Path, opener):
    directory = tmp_path / "index"
    first = opener(directory)
    before = {path.name for path in directory.iterdir()}
    with pytest.raises(OSError, match="LOCK"):
        opener(directory)
    assert before <= {path.name for path in directory.iterdir()}
    first.close()
    del first
    gc.collect()
    opener(directory).close()


@pytest.mark.parametrize("opener", OPENERS)
def test_a_damaged_one_is_made_anew(tmp_path: Path, opener):
    directory = tmp_path / "index"
    opener(directory).close()
    (directory / "CURRENT").write_text("nonsense")
    opener(directory).close()


@pytest.mark.parametrize("opener", OPENERS)
def test_a_place_that_cannot_be_a_directory_is_named(tmp_path: Path, opener):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        opener(tmp_path / "file" / "index")


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("machine", ["runs on", "was started anew"])
def test_one_that_was_open_when_the_machine_went_down_is_made_anew(
    tmp_path: Path, opener, machine: str, monkeypatch: pytest.MonkeyPatch
):
    directory, killed = tmp_path / "index", tmp_path / "killed"
    first = opener(directory)
    first._db[b"key"] = b"value"
    killed_copy(directory, killed)
    first.close()
    (killed / "LOCK").unlink()
    if machine != "runs on":
        monkeypatch.setattr(rocks, "boot_id", lambda: "another")
    for left, kept in ((directory, True), (killed, machine == "runs on")):
        again = opener(left)
        assert (again._get(b"key") == b"value") is kept
        again.close()


@pytest.mark.parametrize(
    "look",
    [
        lambda store: list(store._from(b"", b"")),
        lambda store: list(store._keys_back(b"\xff", b"")),
        lambda store: [
            store._has_between(b"%04d" % at, b"%04d" % (at + 1)) for at in range(5000)
        ],
    ],
    ids=["forward", "back", "between"],
)
def test_a_damaged_block_is_an_error_and_not_the_end(
    tmp_path: Path, look: Callable[[rocks.Rocks], object]
):
    store = rocks.Rocks.open(tmp_path)
    for at in range(5000):
        store._db[b"%04d" % at] = hashlib.sha256(b"%d" % at).digest()
    store.close()
    (path,) = tmp_path.glob("*.sst")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    store = rocks.Rocks.open(tmp_path)
    with pytest.raises(Exception, match="Corruption"):
        look(store)
    store.close()
