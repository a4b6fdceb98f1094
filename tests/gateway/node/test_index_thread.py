"""The thread of the index: its errors are of one kind, and it can be opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.index_thread import IndexLostError, IndexThread
from ropeway.gateway.node.timer.index import Entry, Index
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = Entry(5, 1, 5, 100, 0, b"orders+K")


@looped
async def test_what_goes_wrong_is_one_kind_of_error(tmp_path: Path):
    thread = IndexThread("timers", Index, tmp_path / "timer")
    with pytest.raises(IndexLostError, match="closed"):
        await thread.run(Index.checkpoint)
    await thread.open()
    await thread.run(Index.add, [ENTRY], [], (2, 0))
    with pytest.raises(IndexLostError):
        await thread.run(Index.add, [ENTRY], [], (-1, 0))
    await thread.close()
    await thread.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexLostError, match="file"):
        await IndexThread("timers", Index, tmp_path / "file" / "timer").open()


@looped
async def test_it_opens_again_with_what_it_had_or_without(tmp_path: Path):
    thread = IndexThread("timers", Index, tmp_path / "timer")
    await thread.open()
    await thread.run(Index.add, [ENTRY], [], (2, 0))
    await thread.close()
    await thread.open()
    assert await thread.run(Index.next_ms, 0) == 5
    await thread.open(anew=True)
    assert await thread.run(Index.next_ms, 0) is None
    await thread.close()
