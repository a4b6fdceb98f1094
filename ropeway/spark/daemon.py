"""Spark's daemon of Python workers, with what they need imported before they fork.

Spark starts it by `spark.python.daemon.module`. Its own daemon imports little, and so
each worker would import Arrow, pandas and this package anew: half a second of CPU time.
"""

import gc
from importlib import import_module

from pyspark import daemon

IMPORTED = tuple(
    import_module(name)
    for name in (
        "pandas",
        "pyarrow",
        "pyspark.sql.streaming.stateful_processor_api_client",
        "pyspark.sql.worker.plan_data_source_read",
        "pyspark.sql.worker.write_into_data_source",
        "ropeway.spark.source",
        "ropeway.streams.spark_plan",
    )
)
"""What workers find ready."""

if __name__ == "__main__":
    # A worker collects garbage after each task: what was imported is none, and looking
    # at it took as long as a small task. Source: manager in pyspark/daemon.py, 4.3.0.
    gc.freeze()
    daemon.manager()
