"""The files that a job keeps in its checkpoint besides those of Spark's queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Checkpoint:
    """A folder on any storage that Spark knows.

    Args:
        spark: Reads and writes it.
        folder: Its path or address.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self.folder = folder.rstrip("/")

    def path(self, name: str) -> str:
        """Where something of that name is."""
        return f"{self.folder}/{name}"

    def read(self, name: str) -> str | None:
        """What a file has; None where there is none."""
        path, files = self._open(name)
        if not files.exists(path):
            return None
        stream = files.open(path)
        found = bytes(stream.readAllBytes()).decode()
        stream.close()
        return found

    def write(self, name: str, text: str) -> None:
        """Write a file, as a whole or not at all."""
        path, files = self._open(f"{name}.new")
        stream = files.create(path)
        stream.write(bytearray(text.encode()))
        stream.close()
        target, _ = self._open(name)
        files.delete(target, False)
        files.rename(path, target)

    def _open(self, name: str) -> tuple[Any, Any]:
        # Spark's own view of files: py4j is the only way to it.
        jvm: Any = self._spark._jvm  # noqa: SLF001
        java_context: Any = self._spark.sparkContext._jsc  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(self.path(name))
        return path, path.getFileSystem(java_context.hadoopConfiguration())
