"""Files of a checkpoint, by Spark's own view of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.streams.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.jvm
def test_a_file_is_read_as_it_was_written_last(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(spark, f"{tmp_path}/")
    assert checkpoint.read("topology") is None
    for text in ("first", "dernière"):
        checkpoint.write("topology", text)
        assert checkpoint.read("topology") == text
    assert checkpoint.path("topology") == f"{tmp_path}/topology"
    assert not (tmp_path / "topology.new").exists()
