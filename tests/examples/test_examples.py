"""The examples run, and do what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ropeway.streams import RopewayStream
from ropeway.streams.jobfile import load_job
from ropeway.testing import Gateway
from tests.spark_session import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT_S = 240

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


def minute(item: str, price: int, time_ms: int) -> str:
    return json.dumps({"item": item, "price": price, "time_ms": time_ms})


SENT = {
    "word_count": {"lines": ["to be or", "not to be"]},
    "order_totals": {
        "orders": [minute("tea", 3, 0), minute("tea", 4, 59_000), minute("x", 1, 10**6)]
    },
    "enrichment": {
        "customers": ['{"id": 7, "name": "Ada"}'],
        "orders": ['{"customer": 7}', '{"customer": 8}'],
    },
}
FOUND = {
    "word_count": ["be: 1", "be: 2", "not: 1", "or: 1", "to: 1", "to: 2"],
    "order_totals": ['{"item": "tea", "minute_ms": 0, "total": 7}'],
    "enrichment": [
        '{"customer": 7, "name": "Ada"}',
        '{"customer": 8, "name": null}',
    ],
}
SINKS = {"word_count": "counts", "order_totals": "totals", "enrichment": "named"}


@pytest.fixture
def topics(tmp_path: Path) -> Iterator[Topics]:
    """Topics of a gateway of its own: examples share names."""
    gateway = Gateway(tmp_path / "data")
    gateway.start()
    yield Topics(gateway.name_server)
    gateway.kill()


def test_all_are_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SENT.keys()


@pytest.mark.parametrize("name", SENT)
def test_it_does_what_it_says(
    name: str, spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    for topic, bodies in SENT[name].items():
        topics.extend(topic, 1)
        topics.send(topic, bodies)
    topics.extend(SINKS[name], 1)
    job = RopewayStream(
        load_job(EXAMPLES / f"{name}.py"),
        spark,
        topics.name_server,
        checkpoint=str(tmp_path / "checkpoint"),
        options={"startingOffsets": "earliest"},
    )
    job.start(available_now=True)
    assert job.wait(TIMEOUT_S)
    assert sorted(topics.read(SINKS[name])) == FOUND[name]
