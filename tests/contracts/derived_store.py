"""What every derived store promises: the fold of the log, or a clear error.

A part's test subclasses the contract and gives a `Part`: a log that grows, and the real
reader that folds it into a store in a directory.
"""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from ropeway.gateway.node.derived_store import DerivedStore
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.node.rocks import Rocks
from tests.copies import killed_copy
from tests.remoting import looped

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

State = dict[bytes, bytes]


class Part(Protocol):
    """A part that keeps a derived store."""

    async def grow(self) -> None:
        """Have the part write records to its log."""

    async def fold(self, directory: Path, *, anew: bool = False) -> State:
        """Have the part follow the log to its end, and give all that the store has.

        Raises:
            IndexLostError: The store is to be made anew.
        """


def state_of(store: DerivedStore) -> State:
    """All that a store has."""
    return dict(store._from(b"", b""))


async def folded(part: Part, directory: Path) -> State:
    """What a part has after it did what its duty does with a lost store."""
    try:
        return await part.fold(directory)
    except IndexLostError:
        return await part.fold(directory, anew=True)


def harmed(path: Path, harm: str) -> None:
    data = path.read_bytes()
    if harm == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "emptied":
        path.write_bytes(b"")
    elif harm == "lost":
        path.unlink()
    else:
        at = len(data) // 2 if harm == "damaged" else 20
        if at < len(data):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])


class DerivedStoreContract:
    """Tests for any derived store; a subclass says which part has it."""

    def part(self, path: Path) -> AbstractAsyncContextManager[Part]:
        """The part, on a log of its own, which is read a record at a time."""
        raise NotImplementedError

    @looped
    async def test_a_kill_at_every_step_leaves_what_can_be_gone_on_with(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        steps: list[Path] = []
        write = Rocks._write

        def noted(store: Rocks, batch: Any) -> None:
            write(store, batch)
            if store._open.parent != tmp_path / "whole":
                return
            steps.append(tmp_path / f"killed-{len(steps)}")
            killed_copy(tmp_path / "whole", steps[-1])
            (steps[-1] / "LOCK").unlink()

        async with self.part(tmp_path) as part:
            await part.grow()
            with monkeypatch.context() as patch:
                patch.setattr(Rocks, "_write", noted)
                wanted = await part.fold(tmp_path / "whole")
            assert len(steps) > 2
            for step in steps:
                assert await part.fold(step) == wanted

    @pytest.mark.slow
    @looped
    @pytest.mark.parametrize("harm", ["cut", "emptied", "lost", "damaged", "begun ill"])
    async def test_a_harmed_file_is_never_a_wrong_answer(
        self, tmp_path: Path, harm: str
    ):
        async with self.part(tmp_path) as part:
            await part.grow()
            whole = tmp_path / "whole"
            wanted = await part.fold(whole)
            for name in sorted(one.name for one in whole.iterdir()):
                copy = tmp_path / f"harmed-{name}"
                shutil.copytree(whole, copy)
                harmed(copy / name, harm)
                assert await folded(part, copy) == wanted, name

    @looped
    async def test_a_store_from_before_goes_on_and_its_records_may_come_twice(
        self, tmp_path: Path
    ):
        async with self.part(tmp_path) as part:
            await part.grow()
            old = await part.fold(tmp_path / "old")
            shutil.copytree(tmp_path / "old", tmp_path / "twice")
            await part.grow()
            wanted = await part.fold(tmp_path / "old")
            assert wanted == await part.fold(tmp_path / "fresh")
            self._set_checkpoints(tmp_path / "old", old)
            assert await part.fold(tmp_path / "old") == wanted
            assert await part.fold(tmp_path / "twice") == wanted

    @looped
    async def test_a_disk_that_is_full_for_a_while_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        write = Rocks._write
        left = 0

        def full(store: Rocks, batch: Any) -> None:
            nonlocal left
            left -= 1
            if not left and store._open.parent.name == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(store, batch)

        async with self.part(tmp_path) as part:
            await part.grow()
            wanted = await part.fold(tmp_path / "whole")
            monkeypatch.setattr(Rocks, "_write", full)
            # The first write gives the store its format, without which it is none.
            for step in range(2, 6):
                left = step
                assert await folded(part, tmp_path / "full") == wanted
                shutil.rmtree(tmp_path / "full")

    @looped
    async def test_a_store_of_another_log_of_that_length_is_made_again(
        self, tmp_path: Path
    ):
        async with self.part(tmp_path / "a") as part:
            await part.grow()
            await part.fold(tmp_path / "other")
        async with self.part(tmp_path / "b") as part:
            await part.grow()
            wanted = await part.fold(tmp_path / "fresh")
            assert await part.fold(tmp_path / "other") == wanted

    @looped
    async def test_a_store_of_another_version_is_made_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        async with self.part(tmp_path) as part:
            await part.grow()
            with monkeypatch.context() as patch:
                patch.setattr(DerivedStore, "FORMAT", DerivedStore.FORMAT + 1)
                await part.fold(tmp_path / "newer")
            wanted = await part.fold(tmp_path / "fresh")
            assert await part.fold(tmp_path / "newer") == wanted

    @looped
    async def test_a_store_that_is_ahead_of_its_log_is_made_again(self, tmp_path: Path):
        async with self.part(tmp_path / "a") as part:
            await part.grow()
            await part.grow()
            await part.fold(tmp_path / "ahead")
        async with self.part(tmp_path / "b") as part:
            await part.grow()
            wanted = await part.fold(tmp_path / "fresh")
            assert await part.fold(tmp_path / "ahead") == wanted

    @staticmethod
    def _set_checkpoints(directory: Path, state: State) -> None:
        store = Rocks.open(directory)
        for key, value in state.items():
            if key.startswith(b"n"):
                store._db[key] = value
        store.close()
