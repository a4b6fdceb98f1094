"""Formats of tables that Spark has from others' jars: which fit this Spark, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Mapping

DELTA: Mapping[str, str] = {"4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"}
"""Versions of Spark that Ropeway was tried on with a build of Delta, and that build."""

_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
_PACKAGES = "spark.jars.packages"
_OF_DELTA: Mapping[str, str] = {
    _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_BY_USER = ("spark.jars", _PACKAGES, _EXTENSIONS, _CATALOG)
"""Who sets one of these brings what the format needs."""

_WHY = {
    "delta": "Delta 4.4.0 has builds for Spark up to 4.2; "
    "allowed: pip install 'pyspark==4.2.1', or your own jars by --set spark.jars=...",
    "iceberg": "Iceberg 1.12.0 has builds for Spark up to 4.1, which Ropeway does not "
    "run on; allowed: delta, parquet, or your own jars by --set spark.jars=...",
}


def lake_settings(
    file_format: str, settings: Mapping[str, str], version: str = pyspark.__version__
) -> dict[str, str]:
    """Add what a format needs of Spark to a session's settings.

    Args:
        file_format: `delta`, `iceberg`, or one that Spark has by itself.
        settings: What the user has set, which comes first.
        version: Of Spark.

    Raises:
        ValueError: No build of the format fits this Spark, and the user names none.
    """
    needed = _OF_DELTA if file_format == "delta" else {}
    if file_format not in _WHY or any(name in settings for name in _BY_USER):
        return {**needed, **settings}
    build = DELTA.get(".".join(version.split(".")[:2]))
    if file_format != "delta" or build is None:
        raise ValueError(
            f"--format is {file_format}, and Spark is {version}: {_WHY[file_format]}"
        )
    return {_PACKAGES: build, **needed, **settings}
