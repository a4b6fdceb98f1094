"""A Spark session for Ropeway's jobs, with the settings that they want."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException as SparkFailedError
from pyspark.sql import SparkSession

from ropeway.spark import register

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SETTINGS", "STATE", "SparkFailedError", "SparkSession", "open_session"]

_STATE_STORE = "spark.sql.streaming.stateStore"

STATE: Mapping[str, str] = {
    f"{_STATE_STORE}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
}
"""State is in RocksDB, and a checkpoint has its changes alone."""

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # Python workers start slowly on a loaded machine.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.python.daemon.module": "ropeway.spark.daemon",
    **STATE,
}
"""What every session is given."""

_LOCAL: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # One partition a core is plenty on one machine, and each costs a Python worker.
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a session on this machine alone is given, too."""


def open_session(
    name: str, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a session, or take the one that runs, and register the data source.

    Args:
        name: What Spark calls the application.
        master: Where it runs: `local[*]`, `spark://host:port`, `yarn`, `k8s://...`.
        settings: Spark's settings; they come before those of Ropeway.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    all_settings = {**SETTINGS, **(settings or {})}
    if master.startswith("local"):
        all_settings = {**_LOCAL, **all_settings}
        if SparkSession.getActiveSession() is None:
            _use_installed_modules()
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in all_settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    register(session)
    return session


def _use_installed_modules() -> None:
    """Let workers import PySpark as it is installed, not from Spark's own archive.

    The archive has no compiled modules: a worker would take three times as long to
    start, and Spark gives some of them 10 s, which it has no setting for.
    Source: PythonWorkerFactory.createSimpleWorker, Spark 4.3.0.
    """
    if "SPARK_HOME" in os.environ:
        return
    home = Path(tempfile.mkdtemp(prefix="ropeway-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ["SPARK_HOME"] = str(home)
