"""A query with a checkpoint on a local disk starts with the setting that suits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.spark.query_start import MANAGER, is_local, start_query

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ELSEWHERE = "hdfs://127.0.0.1:1/checkpoint"


class Writer:
    """Notes what a query would start with."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.given: dict[str, str] = {}

    def option(self, name: str, value: str) -> Writer:
        """Take an option."""
        self.given[name] = value
        return self

    def start(self) -> Any:
        """Say which setting holds."""
        return self._spark.conf.get(MANAGER, None)


def test_a_local_checkpoint_has_its_own_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer: Any = Writer(spark)
    assert is_local(spark, str(tmp_path))
    assert is_local(spark, f"file://{tmp_path}")
    assert not is_local(spark, ELSEWHERE)
    started: Any = start_query(spark, writer, str(tmp_path))
    assert str(started).endswith(".FileSystemBasedCheckpointFileManager")
    assert writer.given == {"checkpointLocation": str(tmp_path)}
    # Others of the session have Spark's default again.
    assert spark.conf.get(MANAGER, None) is None
    assert start_query(spark, writer, ELSEWHERE) is None


def test_what_a_user_has_set_stays(spark: SparkSession, tmp_path: Path) -> None:
    writer: Any = Writer(spark)
    spark.conf.set(MANAGER, "mine")
    try:
        assert str(start_query(spark, writer, str(tmp_path))) == "mine"
        assert spark.conf.get(MANAGER) == "mine"
    finally:
        spark.conf.unset(MANAGER)
