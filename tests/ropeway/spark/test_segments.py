"""Segments of a tier, read without a gateway: what is there, and what is wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client.columns import read_columns
from ropeway.spark import segments
from ropeway.spark.segments import TierError
from ropeway.storage.tiered.api import ObjectMissingError
from tests.ropeway.spark.tiers import TOPIC, Sent, make

if TYPE_CHECKING:
    from pathlib import Path

SENT = [Sent(f"m{at}", "odd" if at % 2 else "even", "", 1000 + at) for at in range(10)]


def bodies(
    url: str,
    begin: int,
    end: int,
    tags: list[str] | None = None,
    *,
    must_be_whole: bool = True,
    before=lambda _: None,
) -> list[str]:
    """What a range of a tier's only queue has; `before` is called when it is known."""

    async def main() -> list[str]:
        async with segments.opened(url) as provider:
            (queue,) = await segments.queues(provider, TOPIC, "broker-0")
            await asyncio.to_thread(before, queue)
            found: list[str] = []
            async for data in segments.read(
                provider, queue.segments, begin, end, tags, must_be_whole=must_be_whole
            ):
                columns = read_columns(data, begin, end)
                found += [body.decode() for body in columns.bodies]
            return found

    return asyncio.run(main())


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_range_is_read_over_segments(tmp_path: Path, compression: str) -> None:
    url = tmp_path.as_uri()
    make(url, SENT, compression=compression)
    assert bodies(url, 0, 10) == [one.body for one in SENT]
    assert bodies(url, 3, 9) == [one.body for one in SENT[3:9]]
    assert bodies(url, 3, 9, ["odd"]) == ["m3", "m5", "m7"]
    assert bodies(url, 3, 9, ["none"]) == []


def test_a_queue_is_named_as_its_messages_say(tmp_path: Path) -> None:
    make(tmp_path.as_uri(), SENT, number=700, queue_id=3)

    def look(queue) -> None:
        assert (queue.queue.queue_id, queue.number) == (3, 700)
        assert (queue.begin, queue.end) == (0, 10)

    bodies(tmp_path.as_uri(), 0, 0, before=look)


def test_of_a_topic_that_was_made_again_the_new_one_is_read(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT, identity=2, written_ms=1000)
    make(url, [Sent("new")], identity=1, written_ms=2000)
    assert bodies(url, 0, 1) == ["new"]


def test_offsets_are_found_by_time(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT, base=100)

    async def main() -> list[int]:
        async with segments.opened(url) as provider:
            (queue,) = await segments.queues(provider, TOPIC, "broker-0")
            times = (0, 1000, 1005, 1009, 1010)
            return [await segments.offset_at(provider, queue, one) for one in times]

    assert asyncio.run(main()) == [100, 100, 105, 109, 110]


def test_what_is_missing_is_an_error_or_passed_over(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT[:4])
    make(url, SENT[6:], base=6)
    with pytest.raises(TierError, match=r"offsets 4 to 9 of partition 7 of topic"):
        bodies(url, 2, 10)
    found = bodies(url, 2, 20, must_be_whole=False)
    assert found == ["m2", "m3", "m6", "m7", "m8", "m9"]


def test_segments_that_are_put_together_meanwhile_are_found_again(
    tmp_path: Path,
) -> None:
    url = tmp_path.as_uri()
    make(url, SENT)

    def merge(_queue) -> None:
        for path in tmp_path.rglob("*.*"):
            path.unlink()
        make(url, SENT, a_segment=10)

    assert bodies(url, 1, 9, before=merge) == [one.body for one in SENT[1:9]]


def test_objects_that_stay_away_are_named(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT)

    def lose(_queue) -> None:
        for path in tmp_path.rglob("*.data"):
            path.unlink()

    with pytest.raises(TierError, match=r"no object orders/7-.*\.data") as caught:
        bodies(url, 0, 10, before=lose)
    assert isinstance(caught.value.__cause__, ObjectMissingError)


def test_what_was_altered_is_named_with_its_object(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT)
    path = max(tmp_path.rglob("*.data"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        TierError, match=rf"{path.name}: block 0 at 0: not what was written"
    ):
        bodies(url, 0, 10)


def test_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    make(url, SENT)
    path = min(tmp_path.rglob("*.index"))
    data = bytearray(path.read_bytes())
    data[8:10] = (3).to_bytes(2, "little")
    path.write_bytes(data)
    wanted = rf"{path.name}: it has format 3; this program reads up to 2: use a newer"
    with pytest.raises(TierError, match=wanted):
        bodies(url, 0, 10)


def test_a_broker_is_named_by_the_folder() -> None:
    assert segments.broker_of("s3://b/ropeway/broker-0/?region=x") == "broker-0"
    assert segments.broker_of("file:///a/broker%20b") == "broker b"
