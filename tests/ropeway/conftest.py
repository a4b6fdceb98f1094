"""The fixtures that Ropeway gives its users, here without being installed."""

from ropeway.pytest_plugin import ropeway_gateway, ropeway_topic

__all__ = ["ropeway_gateway", "ropeway_topic"]
