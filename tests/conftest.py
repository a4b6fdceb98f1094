"""Plugins that all tests share."""

import gc

import pytest
import structlog

pytest_plugins = [
    "tests.compatibility",
    "tests.chance",
    "tests.forks",
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


# A coloured traceback, which is the default, takes a second, and a plain one none.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)

# All that is collected stays: looking for garbage among it takes a quarter of the time.
gc.disable()
COLLECT_AFTER = 10_000
"""As in `gateway.process`, where there is the reason."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Have Python's collector look at what tests make, and not at the tests.

    They are there to the end. A look at all of them takes half a second, in the midst
    of some test.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    gc.enable()
