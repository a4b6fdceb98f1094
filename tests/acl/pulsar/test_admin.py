"""What Pulsar's admin REST answers, and what becomes of answers that say nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from ropeway.acl.pulsar.admin import NOBODY, Admin, AdminError
from ropeway.acl.pulsar.token_rest import TokenRest
from tests.remoting import looped
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

POLICIES = {
    # As Pulsar 4.0.8 answers, without the policies of other kinds.
    "auth_policies": {
        "namespace_auth": {"writer": ["produce"]},
        "destination_auth": {
            "persistent://acme/blue/orders": {"reader": ["consume"]},
            "persistent://acme/blue/bills": {"reader": ["produce"]},
        },
        "subscription_auth_roles": {"group": ["reader"]},
    },
    "subscription_auth_mode": "Prefix",
    "replication_clusters": ["standalone"],
}


class FakePulsar:
    """An admin REST with a few answers."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/admin/v2/namespaces/acme/blue": POLICIES,
            "/admin/v2/tenants/acme": {"adminRoles": ["boss"], "allowedClusters": []},
            "/admin/v2/brokers/configuration/runtime": {"superUserRoles": "[root, op]"},
        }
        self.tokens: list[str | None] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization"))
        found = self.answers.get(request.raw_path, 404)
        if isinstance(found, int):
            return web.json_response({"reason": "a reason"}, status=found)
        if isinstance(found, bytes):
            return web.Response(body=found)
        return web.json_response(found)


@asynccontextmanager
async def asking(
    token_file: Path | None = None,
    token: str | None = None,
    *,
    dead_first: bool = False,
) -> AsyncIterator[tuple[FakePulsar, Admin]]:
    fake = FakePulsar()
    app = web.Application()
    app.router.add_get("/{path:.*}", fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host = "{}:{}".format(*runner.addresses[0])
    fake.url = f"http://{host}"
    if dead_first:
        host = f"127.0.0.1:{free_ports(1)[0]},{host}"
    rest = TokenRest(f"http://{host}", token_file, token, None)
    try:
        yield fake, Admin(rest)
    finally:
        await rest.close()
        await runner.cleanup()


@looped
async def test_permissions_are_read_with_the_tenants_admins():
    async with asking() as (_, admin):
        found = await admin.permissions("acme", "blue")
    assert found.namespace == {"writer": {"produce"}}
    assert found.topics["persistent://acme/blue/orders"] == {"reader": {"consume"}}
    assert found.any_topic == {"reader": {"consume", "produce"}}
    assert found.subscriptions == {"group": {"reader"}}
    assert found.by_prefix
    assert found.admins == {"boss"}


@looped
async def test_superusers_are_read_where_we_may():
    async with asking() as (fake, admin):
        assert await admin.superusers() == {"root", "op"}
        path = "/admin/v2/brokers/configuration/runtime"
        for empty in ("", "[]", None):
            fake.answers[path] = {"superUserRoles": empty}
            assert await admin.superusers() == set()
        for status in (401, 403):
            fake.answers[path] = status
            assert await admin.superusers() == set()


@looped
async def test_a_namespace_that_is_not_there_permits_nothing():
    async with asking() as (_, admin):
        assert await admin.permissions("acme", "red") == NOBODY
        # Nor is one made up by what looks like a path.
        assert await admin.permissions("acme", "blue/../blue") == NOBODY
        assert await admin.permissions("x/../acme", "blue") == NOBODY
        assert await admin.permissions("acme", "blue?") == NOBODY


@looped
async def test_admins_that_we_may_not_see_have_no_more_than_others():
    async with asking() as (fake, admin):
        fake.answers["/admin/v2/tenants/acme"] = 401
        found = await admin.permissions("acme", "blue")
        assert found.admins == frozenset()
        assert found.namespace == {"writer": {"produce"}}


@pytest.mark.parametrize(
    "answer",
    [
        *(401, 403, 500, 503, b"", b"{", b"[]", b"null", b"<html>"),
        {"auth_policies": {"namespace_auth": {"writer": "produce"}}},
        {"auth_policies": []},
    ],
)
@looped
async def test_what_says_nothing_permits_nothing(answer: Any):
    async with asking() as (fake, admin):
        fake.answers["/admin/v2/namespaces/acme/blue"] = answer
        with pytest.raises(AdminError):
            await admin.permissions("acme", "blue")
