"""Topics as tables and streams of Spark: the data source `ropeway` for PySpark.

`register` it, then `spark.read`, `spark.readStream`, `df.write` and `df.writeStream`
take `.format("ropeway")`. It works with Ropeway and with RocketMQ's own brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.spark.source import RopewayDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RopewayDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make the data source known to a session, and let filters be pushed down to it.

    Args:
        spark: The session; its workers need Ropeway installed, too.
    """
    # Without this setting, Spark refuses sources that can filter.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(RopewayDataSource)
