"""Rules are kept with the routes, each hook's apart, and changes are told."""

import asyncio

import pytest

from ropeway.acl.api import StoreError
from ropeway.gateway.rules import RouteRules
from ropeway.routing.embedded import EmbeddedRoutes


def test_each_hook_has_its_own_and_is_told_of_them_alone(tmp_path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        first, second = RouteRules(routes, "first"), RouteRules(routes, "second")
        told = []
        second.watch(lambda: told.append(second.items()))
        await first.change("key", lambda _: "1")
        await second.change("key", lambda old: (old or "") + "2")
        assert (first.items(), second.items()) == ({"key": "1"}, {"key": "2"})
        assert told == [{"key": "2"}]
        await second.change("key", lambda _: None)
        assert second.items() == {}
        await routes.close()

    asyncio.run(main())


def test_a_store_that_cannot_be_written_is_an_error(tmp_path):
    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        routes._database.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written"):
            await RouteRules(routes, "first").change("key", lambda _: "1")
        await routes.close()

    asyncio.run(main())
