"""Plugins that all tests share."""

import gc

import pytest

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


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave the tests themselves out of what Python's collector looks at.

    They are there to the end. A look at all of them takes half a second, in the midst
    of some test.
    """
    gc.freeze()
