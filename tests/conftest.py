"""Plugins that all tests share."""

pytest_plugins = ["tests.compatibility", "tests.clients.fixtures"]
