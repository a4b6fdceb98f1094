"""A mirrored job: others read its state, and it goes on from there."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import Admin
from ropeway.streams import RopewayStream, StreamBuilder, TopologyError, Tumbling
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_session import Topics

TIMEOUT_S = 240.0
SECOND_MS = 1000


def pair(body: bytes) -> tuple[str, list[Any]]:
    """JSON with a key in front."""
    value = json.loads(body)
    return value[0], value


def shown(key: Any, value: Any) -> bytes:
    """Key and value as JSON."""
    return json.dumps([key, value]).encode()


def table(topics: Topics, topic: str) -> dict[Any, Any]:
    """What others see of a compacted topic."""

    async def read() -> dict[Any, Any]:
        async with (
            Admin(topics.name_server, config=PATIENT) as admin,
            admin.table(topic) as found,
        ):
            return {key: json.loads(body) for key, body in found.items()}

    return asyncio.run(read())


@pytest.fixture
def run(
    spark: SparkSession, ropeway_topics: Topics, tmp_path: Path
) -> Callable[..., RopewayStream]:
    """Runs a mirrored job over what is there, from a checkpoint of a name."""

    def run(builder: StreamBuilder, checkpoint: str = "first") -> RopewayStream:
        job = RopewayStream(
            builder.build(),
            spark,
            ropeway_topics.from_the_start,
            checkpoint=str(tmp_path / checkpoint),
            is_mirrored=True,
        )
        job.start(available_now=True)
        assert job.wait(TIMEOUT_S)
        return job

    return run


@pytest.mark.slow
@pytest.mark.jvm
def test_a_job_without_its_checkpoint_goes_on_from_the_mirror(
    run: Callable[..., RopewayStream], ropeway_topics: Topics
) -> None:
    source, right = ropeway_topics.make(2), ropeway_topics.make(1)
    counts, windows = ropeway_topics.make(1), ropeway_topics.make(1)

    def builder() -> StreamBuilder:
        builder = StreamBuilder(f"mirrored-{source}")
        orders = builder.source(source, pair).select_timestamp(
            lambda value: value[1] * SECOND_MS
        )
        keyed = orders.key_by(lambda value: value[0])
        keyed.count(name=f"count-{source}").sink(counts, shown)
        # State behind state, of which the first has the others' messages to pass on.
        (
            orders.left_join(builder.source(right, pair).select_timestamp(lambda _: 0))
            .where(lambda value: value[0])
            .equal_to(lambda value: value[0])
            .apply(lambda a, b: [*a, (b or ["", 0])[1]], name=f"join-{source}")
            .key_by(lambda value: value[0])
            .window(Tumbling(10 * SECOND_MS))
            .sum(lambda value: value[1] + value[2], name=f"window-{source}")
            .sink(windows, shown)
        )
        return builder

    ropeway_topics.send(right, ['["a", 100]'])
    ropeway_topics.send(source, ['["a", 1]', '["b", 2]', '["a", 15]'])
    run(builder())
    state = f"{source}-shuffleTopic-stateTopic"
    assert table(ropeway_topics, f"count-{state}") == {
        '"a"': {"value": 2, "state": {"total": None, "count": 2}},
        '"b"': {"value": 1, "state": {"total": None, "count": 1}},
    }
    assert table(ropeway_topics, f"join-{state}") == {
        '"a"': {"state": {"left": ["a", 15], "right": ["a", 100]}},
        '"b"': {"state": {"left": ["b", 2]}},
    }
    fired = sorted(ropeway_topics.read(windows))
    assert fired == ['[["a", 0, 10000], 101]', '[["b", 0, 10000], 2]']
    # The windows that are over have gone from there, too.
    open_window = {"state": {"total": 115, "count": 1}, "has_news": True}
    assert table(ropeway_topics, f"window-{state}") == {
        '["a", 10000, 20000]': open_window
    }

    ropeway_topics.send(source, ['["a", 16]', '["b", 3]'], queue=1)
    ropeway_topics.send(source, ['["z", 99]'])
    run(builder(), "second")
    found = ropeway_topics.read(counts)
    assert sorted(found)[-3:] == ['["b", 1]', '["b", 2]', '["z", 1]']
    assert len(found) == 6
    # What was late is late still: the window of b was over.
    assert sorted(ropeway_topics.read(windows)) == sorted(
        [*fired, '[["a", 10000, 20000], 231]']
    )

    with pytest.raises(TopologyError, match="has gone on from another checkpoint"):
        run(builder(), "first")
