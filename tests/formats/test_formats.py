"""Files that earlier versions have made are read; newer ones are refused by name."""

from __future__ import annotations

import asyncio
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.cli import context_file
from ropeway.gateway.lite.store import Store as LiteStore
from ropeway.gateway.node import record_builder
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.pop.store import Store as PopStore
from ropeway.gateway.wire import recall
from ropeway.routing import database as routes
from ropeway.storage.api import LogDamagedError
from ropeway.storage.file import catalog, offsets, open_log
from ropeway.storage.file import index as file_index
from ropeway.storage.file import segment as file_segment
from ropeway.storage.pulsar import pack
from ropeway.storage.sealed import layout
from ropeway.storage.tiered import metadata
from tests.formats.make import KEPT, file_of
from tests.formats.samples import EVER, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from ropeway.gateway.node.derived_store import DerivedStore
    from tests.formats.samples import Sample


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_what_an_earlier_version_has_made_is_read(tmp_path: Path, one: Sample) -> None:
    name = one.name.replace(" ", "-")
    kept = sorted(KEPT.glob(f"{name}-*.tar.gz"))
    assert file_of(one) in kept, "python -m tests.formats.make, and commit the file"
    for path in kept:
        directory = tmp_path / path.name
        with tarfile.open(path) as tar:
            tar.extractall(directory, filter="data")
        one.check(directory)


REFUSED = [
    ("embedded log", catalog, "VERSION"),
    ("offsets", offsets, "VERSION"),
    ("embedded routes", routes, "SCHEMA_VERSION"),
    ("notes in system topics", record_builder, "NOTE_FORMAT"),
    ("compacted records", layout, "VERSION"),
    ("tiered segments", layout, "VERSION"),
    ("tiered segments", metadata, "VERSION"),
    ("packs and state on Pulsar", pack, "VERSION"),
    ("handles and message ids", recall, "_VERSION"),
    ("contexts of the command line", context_file, "VERSION"),
]
"""Formats with what has their version. Blocks, whose compiled form writes it too,
manifests of compaction, state on Pulsar and the store in ZooKeeper are refused in tests
of their own files."""


@pytest.mark.parametrize(("name", "module", "attribute"), REFUSED)
def test_what_a_newer_version_has_made_is_refused_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: ModuleType,
    attribute: str,
) -> None:
    (one,) = (one for one in SAMPLES if one.name == name)
    ours = getattr(module, attribute)
    newer = ours + 1 if isinstance(ours, int) else "v2"
    with monkeypatch.context() as patch:
        patch.setattr(module, attribute, newer)
        one.make(tmp_path)
    before = files_in(tmp_path)
    wanted = f"has format {newer}; this program reads up to {ours}: use a newer one"
    with pytest.raises(Exception, match=wanted):
        one.check(tmp_path)
    assert files_in(tmp_path) == before, "it is left as it is"


def files_in(directory: Path) -> dict[str, bytes]:
    """All files but those that a process makes anew."""
    left_out = ("lock", "-wal", "-shm")
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
        and not path.name.endswith(left_out)
        # The log below compacted files is opened before, and is of this version.
        and path.parent.name != "log"
    }


def test_an_index_of_a_newer_version_is_made_again_from_its_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = (one for one in SAMPLES if one.name == "embedded log")
    with monkeypatch.context() as patch:
        patch.setattr(file_segment, "VERSION", file_index.VERSION + 1)
        patch.setattr(file_index, "VERSION", file_index.VERSION + 1)
        one.make(tmp_path)
    with pytest.raises(
        LogDamagedError, match="has format 2; this program reads up to 1"
    ):
        one.check(tmp_path)

    async def main() -> None:
        log = open_log(tmp_path, EVER)
        assert len(log.recovery.rebuilt) == 2
        await log.close()

    asyncio.run(main())
    one.check(tmp_path)


@pytest.mark.parametrize(
    ("name", "store"),
    [
        ("store of pops", PopStore),
        ("index of timers", Index),
        ("store of lite topics", LiteStore),
    ],
)
@pytest.mark.parametrize("found", [0, 2])
def test_a_store_of_another_version_is_emptied_to_be_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    store: type[DerivedStore],
    found: int,
) -> None:
    (one,) = (one for one in SAMPLES if one.name == name)
    with monkeypatch.context() as patch:
        patch.setattr(store, "FORMAT", found)
        one.make(tmp_path)
    with closing(store.open(tmp_path)) as opened:
        assert list(opened._from(b"", b"")) == [(b"v", b"\x00\x01")]


def test_every_kept_file_is_small_and_of_a_format() -> None:
    names = {one.name.replace(" ", "-") for one in SAMPLES}
    for path in KEPT.iterdir():
        assert path.name.rpartition("-")[0] in names
        assert path.stat().st_size < 16 << 10
