"""What formats of tables need of Spark."""

from __future__ import annotations

import pytest

from ropeway.spark.lakes import lake_settings

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


def test_delta_brings_its_build_and_settings() -> None:
    found = lake_settings("delta", {"a": "b"}, "4.2.1")
    assert found["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert found["spark.sql.extensions"] == EXTENSION
    assert found["a"] == "b"


def test_formats_of_spark_need_nothing() -> None:
    assert lake_settings("parquet", {"a": "b"}) == {"a": "b"}


def test_who_names_jars_is_believed() -> None:
    found = lake_settings("delta", {"spark.jars": "mine.jar"}, "9.9.0")
    assert "spark.jars.packages" not in found
    assert found["spark.sql.extensions"] == EXTENSION
    own = {"spark.sql.extensions": "Mine"}
    assert lake_settings("delta", own)["spark.sql.extensions"] == "Mine"
    jars = {"spark.jars": "mine.jar"}
    assert lake_settings("iceberg", jars, "9.9.0") == jars


@pytest.mark.parametrize(
    ("file_format", "version", "why"),
    [
        ("delta", "4.3.0", "is 4.3.0: Delta .* allowed: pip install 'pyspark==4.2.1'"),
        ("iceberg", "4.2.1", "is 4.2.1: Iceberg .* up to 4.1, .* allowed: delta"),
    ],
)
def test_a_spark_without_a_build_is_named(
    file_format: str, version: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        lake_settings(file_format, {}, version)
