"""The metadata keep topics, queues and segments, for two processes at a time."""

from __future__ import annotations

import sqlite3

import pytest

from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.tiered.metadata import NAME, Metadata, QueueRow
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment

HIGH = (1 << 64) - 1
"""An identity that no signed number of 64 bits can hold."""


def segment(base, end, identity=HIGH):
    return Segment(SegmentName("orders", 2, identity, base, end), 1, 2, 3, 4, 5)


@pytest.fixture
def metadata(tmp_path):
    opened = Metadata(tmp_path)
    yield opened
    opened.close()


def test_topics_are_kept_with_their_times(metadata):
    first = metadata.add_topic("orders", 5)
    assert metadata.add_topic("orders", 9) == first
    assert metadata.add_topic("bills").topic_id > first.topic_id
    metadata.update_topic_reserve_time("orders", None)
    assert [(one.topic, one.reserve_ms) for one in metadata.iterate_topic()] == [
        ("bills", None),
        ("orders", None),
    ]
    metadata.add_queue("orders", 2, HIGH)
    metadata.delete_topic("orders")
    assert metadata.get_topic("orders") is not None, "it has a queue"
    metadata.delete_queue(HIGH)
    metadata.delete_topic("orders")
    assert metadata.get_topic("orders") is None


def test_queues_are_kept_by_identity(metadata):
    metadata.add_queue("orders", 2, HIGH)
    metadata.add_queue("orders", 2, 7)
    metadata.add_queue("orders", 2, 7)
    metadata.add_queue("bills", 0, 8)
    metadata.update_queue(7, "deleted")
    assert {*metadata.iterate_queue("orders")} == {
        QueueRow("orders", 2, 7, "deleted"),
        QueueRow("orders", 2, HIGH, "active"),
    }
    assert len([*metadata.iterate_queue()]) == 3


def test_segments_are_kept_in_order_and_swapped_at_once(metadata):
    metadata.add_queue("orders", 2, HIGH)
    for base in (10, 0, 5):
        metadata.update_file_segment(segment(base, base + 5), "new")
        metadata.update_file_segment(segment(base, base + 5), "sealed")
    found = [*metadata.iterate_file_segment(HIGH)]
    assert found == [(segment(at, at + 5), "sealed") for at in (0, 5, 10)]
    metadata.swap([segment(0, 5), segment(5, 10)], segment(0, 10))
    assert [
        (one.base, one.end, how) for one, how in metadata.iterate_file_segment()
    ] == [
        (0, 5, "expired"),
        (0, 10, "sealed"),
        (5, 10, "expired"),
        (10, 15, "sealed"),
    ]
    metadata.delete_file_segment(segment(0, 5).name)
    assert metadata.get_file_segment(segment(0, 5).name) is None
    assert metadata.get_file_segment(segment(0, 10).name) == (segment(0, 10), "sealed")


def test_words_are_seen_by_another_process(metadata, tmp_path):
    other = Metadata(tmp_path)
    other.put_state("paused", "asked")
    assert metadata.get_state("paused") == "asked"
    metadata.put_state("paused", None)
    assert other.get_state("paused") is None
    other.close()


def test_all_is_there_after_another_opening(tmp_path):
    metadata = Metadata(tmp_path)
    metadata.add_queue("orders", 2, HIGH)
    metadata.update_file_segment(segment(0, 5), "sealed")
    metadata.close()
    metadata = Metadata(tmp_path)
    assert [*metadata.iterate_file_segment()] == [(segment(0, 5), "sealed")]
    assert [one.topic for one in metadata.iterate_topic()] == ["orders"]
    metadata.close()


def test_a_file_that_is_none_of_ours_or_newer_is_refused(tmp_path):
    (tmp_path / NAME).write_bytes(b"not a database" * 100)
    with pytest.raises(LogUnavailableError, match=r"tier\.db.*may be deleted"):
        Metadata(tmp_path)
    (tmp_path / NAME).unlink()
    file = sqlite3.connect(tmp_path / NAME)
    file.execute("PRAGMA user_version = 2")
    file.close()
    with pytest.raises(LogError, match="format 2; this program reads up to 1"):
        Metadata(tmp_path)
