"""What a filter lets through."""

from __future__ import annotations

from ropeway.storage.compaction.accepted_parts import accepted
from tests.storage.compaction.logs import record


def test_each_record_that_is_accepted_is_given_by_itself() -> None:
    texts = ["a=1", "b=22", "a=333"]
    data = memoryview(b"".join(record(text).data for text in texts))
    kept = accepted([data], lambda one: bytes(one[4:5]) == b"a")
    assert [bytes(one[4:]) for one in kept] == [b"a=1", b"a=333"]
