"""Plugins that all tests share."""

pytest_plugins = [
    "tests.compatibility",
    "tests.chance",
    "tests.distribution",
    "tests.reaper",
    "tests.starts",
    "tests.failures",
    "tests.rules",
    "tests.clients.fixtures",
    "tests.system.fixtures",
    "tests.spark_session",
    "tests.counts",
]
