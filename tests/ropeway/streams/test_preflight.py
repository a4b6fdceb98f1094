"""Topics are looked for before a job starts; those of its shuffles are made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, BulkReader
from ropeway.spark.options import read_options
from ropeway.streams import StreamBuilder, TopologyError
from ropeway.streams.preflight import prepare
from ropeway.testing import Gateway
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.streams import Topology
    from tests.spark_session import Topics


def counting(source: str, sink: str) -> Topology:
    builder = StreamBuilder(f"job-{source}")
    builder.source(source).key_by(str).through().count().sink(sink)
    return builder.build()


def test_the_topic_of_a_shuffle_is_made_with_eight_queues(
    ropeway_topics: Topics,
) -> None:
    source, sink = ropeway_topics.make(), ropeway_topics.make()
    options = read_options({"nameServer": ropeway_topics.name_server})
    for _ in range(2):
        prepare(counting(source, sink), options, None)

    async def queues(topic: str) -> int:
        async with BulkReader(
            ropeway_topics.name_server, "tests", config=PATIENT
        ) as reader:
            return len(await reader.queues(topic))

    shuffled = f"job-{source}-ROPEWAY-COUNT-1-shuffleTopic"
    assert asyncio.run(queues(shuffled)) == 8


@pytest.mark.parametrize(
    ("source", "sink", "dead", "complaint"),
    [
        (
            "no",
            "",
            None,
            r"step 'job-no-ROPEWAY-SOURCE-1': topic 'no' does",
        ),
        (
            "",
            "no",
            None,
            r"step 'job-\S+-ROPEWAY-SINK-1': topic 'no' does",
        ),
        ("", "", "no", "dead_letters: topic 'no' does not"),
    ],
)
def test_a_topic_that_is_not_there_is_named_with_its_step(
    ropeway_topics: Topics, source: str, sink: str, dead: str | None, complaint: str
) -> None:
    there = ropeway_topics.make()
    options = read_options({"nameServer": ropeway_topics.name_server})
    with pytest.raises(TopologyError, match=complaint):
        prepare(counting(source or there, sink or there), options, dead)


RULES = """\
accounts:
  - accessKey: root-root
    secretKey: hush-hush-hush
    admin: true
  - accessKey: sender-bob
    secretKey: hush-hush-hush
    topicPerms: [shown=PUB, open=PUB|SUB]
"""


def test_a_user_without_permission_is_told_which_step_he_may_not_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "rules.yml").write_text(RULES)
    config = tmp_path / "ropeway.toml"
    config.write_text(
        '[acl]\nhooks = ["plain"]\n'
        f'[acl.options.plain]\nfile = "{tmp_path}/rules.yml"\n'
    )
    gateway = Gateway(tmp_path / "data", ["--config", str(config)])
    gateway.start()
    try:
        given = {"nameServer": gateway.name_server, "secretKey": "hush-hush-hush"}
        root = read_options({**given, "accessKey": "root-root"})

        async def make() -> None:
            config = root.client_config()
            async with Admin(gateway.name_server, config=config) as admin:
                for topic in ("shown", "hidden", "open"):
                    await admin.create_topic(topic, 1)

        asyncio.run(make())
        sender = read_options({**given, "accessKey": "sender-bob"})
        for source, sink, step in (
            ("hidden", "open", "SOURCE-1': topic 'hidden'"),
            ("open", "hidden", "SINK-1': topic 'hidden'"),
        ):
            builder = StreamBuilder("job")
            builder.source(source).sink(sink)
            with pytest.raises(
                TopologyError, match=rf"{step}: .*; allowed: topics that this user"
            ):
                prepare(builder.build(), sender, None)
        builder = StreamBuilder("job")
        builder.source("open").sink("shown")
        prepare(builder.build(), sender, None)
    finally:
        gateway.kill()
