"""The tutorial's Python, block after block, prints what stands below each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pages import DOCS, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark_session import Topics

pytestmark = [pytest.mark.slow, pytest.mark.jvm]
SHOWN = [
    one
    for one in blocks(DOCS / "tutorial-spark.md")
    if one.language in ("python", "text")
]


def test_each_block_prints_what_stands_below_it(
    spark: SparkSession,
    ropeway_topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    monkeypatch.setattr("ropeway.spark.session.open_session", lambda *_: spark)
    for topic, queues in (("orders", 2), ("totals", 1), ("sums", 1)):
        ropeway_topics.extend(topic, queues)
    for block in SHOWN:
        if block.language == "python":
            capsys.readouterr()
            code = block.text.replace("127.0.0.1:9876", ropeway_topics.name_server)
            exec(compile(code, f"line {block.line}", "exec"), names)
        else:
            assert capsys.readouterr().out.strip() == block.text.strip()
