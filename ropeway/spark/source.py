"""The data source: which reader or writer does what a user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ropeway.spark.batch import BatchReader
from ropeway.spark.options import read_options
from ropeway.spark.rows import check_schema, default_schema
from ropeway.spark.sink import BatchWriter, StreamWriter, check_columns
from ropeway.spark.stream import StreamReader
from ropeway.spark.tier import TierReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ropeway.spark.options import Options


class RopewayDataSource(DataSource):
    """Topics of Ropeway, and of RocketMQ's own brokers."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "ropeway"

    def schema(self) -> StructType:
        """The columns of who asks for none."""
        options = read_options(self.options)
        asked = {
            "properties": options.include_properties,
            "headers": options.include_headers,
        }
        return default_schema(*(name for name, wanted in asked.items() if wanted))

    def reader(self, schema: StructType) -> BatchReader:
        """Read topics as they are."""
        check_schema(schema)
        options = read_options(self.options)
        kind = TierReader if options.tier else BatchReader
        return kind(options, schema.fieldNames())

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """Read topics as they grow."""
        check_schema(schema)
        return StreamReader(self._of_brokers(), schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Send the rows of a table."""
        if overwrite:
            raise ValueError("mode overwrite; allowed: append, topics only grow")
        options = self._of_brokers()
        check_columns(schema, options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002, N802
        """Send the rows of a stream."""
        options = self._of_brokers()
        check_columns(schema, options)
        return StreamWriter(options)

    def _of_brokers(self) -> Options:
        options = read_options(self.options)
        if options.tier:
            raise ValueError(
                "option tier; allowed: to read a table, for streams and writing go "
                "through brokers"
            )
        return options
