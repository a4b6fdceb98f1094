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


# All that is collected stays: looking for garbage among it takes a quarter of the time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Have Python's collector look at what tests make, and not at the tests.

    They are there to the end. A look at all of them takes half a second, in the midst
    of some test.
    """
    gc.freeze()
    gc.enable()
