"""Plugins that all tests share."""

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.compatibility",
    "tests.distribution",
    "tests.again",
    "tests.clients.fixtures",
    "tests.system.fixtures",
    "tests.spark_session",
]

# The same examples each time, however slow the machine is.
settings.register_profile(
    "ropeway",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ropeway")
