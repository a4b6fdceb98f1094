"""The index: by time, within bounds, and made anew where it cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.timer.index import Entry, Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def entry(visit_ms: int, offset: int, name: str = "K", topic: str = "orders") -> Entry:
    return Entry(visit_ms, offset, visit_ms, 100, 3, f"{topic}+{name}".encode())


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index.open(tmp_path / "data" / "timer")
    yield opened
    opened.close()


def test_what_is_due_comes_by_time_and_then_by_offset(index: Index):
    times = [(7, 0), (5, 1), (5, 2), (6, 3), (300, 4)]
    index.add([entry(*one) for one in times], [], (5, 1))
    assert [one.offset for one in index.due(0, 7, 10, 9999)[0]] == [1, 2, 3, 0]
    assert [one.offset for one in index.due(5, 7, 10, 9999)[0]] == [3, 0]
    assert [one.offset for one in index.due(0, 7, 2, 9999)[0]] == [1, 2]
    assert [one.offset for one in index.due(0, 7, 10, 250)[0]] == [1, 2]
    assert [one.offset for one in index.due(0, 7, 10, 1)[0]] == [1]
    assert (index.next_ms(7), index.next_ms(300)) == (300, None)
    assert index.checkpoint() == (5, 1)


def test_recalls_are_of_one_message_and_go_with_their_time(index: Index):
    messages = [entry(5, 0, "a"), entry(5, 1, "b"), entry(6, 2, "a")]
    assert index.recalled(messages) == set()
    index.add(messages, [(5, b"orders+a")], (4, 0))
    assert index.recalled(messages) == {0}
    assert index.page(b"", None, 10, 10) == (messages[1:], None)
    index.remove(messages[:2], 5)
    assert index.recalled(messages) == {0}
    index.remove([], 6)
    assert index.recalled(messages) == set()
    assert index.due(0, 9, 9, 9999)[0] == messages[2:]


def test_what_another_node_has_visited_is_swept_and_what_it_has_not_stays(
    index: Index,
):
    index.add([entry(one, one) for one in range(1, 9)], [], (9, 0))
    assert index.sweep(5, 4) == 3
    found, _ = index.due(0, 99, 99, 9999)
    assert [(one.visit_ms, one.offset) for one in found] == [
        *((number, number) for number in (4, 5, 6, 7, 8)),
    ]
    assert index.sweep(5, 6) == 5


def test_much_that_is_swept_is_written_in_parts(
    index: Index, monkeypatch: pytest.MonkeyPatch
):
    index.add([entry(one, one) for one in range(1, 9)], [], (9, 0))
    monkeypatch.setattr("ropeway.gateway.node.timer.index._SWEEP", 3)
    write, sizes = Index._write, []

    def written(self: Index, batch) -> None:
        sizes.append(batch.len())
        write(self, batch)

    monkeypatch.setattr(Index, "_write", written)
    assert index.sweep(9, 9) == 9
    assert sizes == [3, 3, 2]
    assert index.due(0, 99, 99, 9999)[0] == []


def test_pages_go_on_where_the_last_one_ended_and_look_at_no_more_than_asked(
    index: Index,
):
    index.add(
        [entry(9, one, f"{one}", "ab"[one % 2]) for one in range(10)], [], (10, 0)
    )
    pages, after = [], b""
    while after is not None:
        page, after = index.page(after, b"a", 3, 4)
        pages.append([one.offset for one in page])
    assert [offset for page in pages for offset in page] == [0, 2, 4, 6, 8]
    assert all(len(page) <= 2 for page in pages)
    assert index.page(b"\xff" * 30, None, 9, 9) == ([], None)


def test_what_was_added_is_there_after_it_was_closed(tmp_path: Path):
    index = Index.open(tmp_path)
    index.add([entry(5, 1)], [(5, b"x+y")], (2, 77))
    index.close()
    index = Index.open(tmp_path)
    assert index.due(0, 9, 9, 9999)[0] == [entry(5, 1)]
    assert index.checkpoint() == (2, 77)
    index.clear()
    assert (index.next_ms(0), index.checkpoint()) == (None, None)
    index.close()


def test_one_that_cannot_be_read_is_made_anew(tmp_path: Path):
    index = Index.open(tmp_path)
    index.add([entry(5, 1)], [], (2, 0))
    index.close()
    (tmp_path / "CURRENT").write_text("nonsense")
    index = Index.open(tmp_path)
    assert index.checkpoint() is None
    index.close()


def test_one_that_another_has_open_is_left_alone(tmp_path: Path):
    index = Index.open(tmp_path)
    index.add([entry(5, 1)], [], (2, 0))
    with pytest.raises(OSError, match="lock"):
        Index.open(tmp_path)
    assert index.due(0, 9, 9, 9999)[0] == [entry(5, 1)]
    index.close()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Index.open(tmp_path / "file" / "timer")


def test_a_look_is_filled_to_its_last_byte_and_the_next_moment_counts(index: Index):
    index.add([entry(5, 0), entry(6, 1), entry(7, 2)], [], (1, 0))
    assert [one.offset for one in index.due(0, 9, 10, 200)[0]] == [0, 1]
    assert [one.offset for one in index.due(0, 9, 10, 199)[0]] == [0]
    assert [index.next_ms(after) for after in (0, 4, 5, 6, 7)] == [5, 5, 6, 7, None]


def test_many_are_swept_in_several_writes(
    index: Index, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.gateway.node.timer.index._SWEEP", 2)
    index.add([entry(one, one) for one in range(1, 9)], [], (9, 0))
    assert index.sweep(7, 6) == 5
    found, _ = index.due(0, 99, 99, 9999)
    assert [one.offset for one in found] == [6, 7, 8]
