"""Starting queries; on a local disk, checkpoints need no processes of their own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
)


def start_query(
    spark: SparkSession, writer: DataStreamWriter, checkpoint: str
) -> StreamingQuery:
    """Start a query with a checkpoint.

    Args:
        spark: Its session.
        writer: All else of it.
        checkpoint: Where it keeps how far it is.
    """
    with _local_files(spark, checkpoint):
        return writer.option("checkpointLocation", checkpoint).start()


@contextmanager
def _local_files(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Have queries that start meanwhile write files without a process for each.

    Spark's default asks Hadoop's file contexts, which start a `chmod` or a `readlink`
    for each file on a local disk. Elsewhere, as on HDFS, it is the safer one; and what
    a user has set stays. A query keeps the settings that it started with.
    """
    if not is_local(spark, checkpoint) or spark.conf.get(MANAGER, None) is not None:
        yield
        return
    spark.conf.set(MANAGER, _LOCAL_MANAGER)
    try:
        yield
    finally:
        spark.conf.unset(MANAGER)


def is_local(spark: SparkSession, path: str) -> bool:
    """Return whether a path is on a local disk."""
    # Spark's own view of files: py4j is the only way to it.
    jvm: Any = spark._jvm  # noqa: SLF001
    java_context: Any = spark.sparkContext._jsc  # noqa: SLF001
    files = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(
        java_context.hadoopConfiguration()
    )
    return bool(files.getScheme() == "file")
