"""Making, changing and deleting users and their policies from the page."""

from __future__ import annotations

from typing import Literal

import msgspec
from aiohttp import web

from ropeway.client import admin_users
from ropeway.gateway.http.login import changing
from ropeway.gateway.http.params import Params, wanted_of
from ropeway.gateway.http.replies import reply
from ropeway.gateway.wire.access_bodies import PolicyEntryInfo, UserInfo

_TYPES = '"Normal" or "Super"'
_ACTIONS = '["Pub", "Sub", "Create", "Update", "Delete", "Get", "List" or "All", ...]'


class _New(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user that is to be there; it may do nothing before it has policies."""

    user: str
    password: str
    type: Literal["Normal", "Super"] = "Normal"


class _Status(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a user can sign in."""

    status: Literal["enable", "disable"]


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may do, or may not; it replaces the one of the same resource."""

    user: str
    resource: str
    actions: list[str]
    decision: Literal["Allow", "Deny"] = "Allow"
    sources: list[str] = []


async def _create(request: web.Request) -> web.Response:
    allowed = f'{{"user": "NAME", "password": "TEXT", "type": {_TYPES}}}'
    wanted = await wanted_of(request, _New, allowed)
    made = UserInfo(
        username=wanted.user, password=wanted.password, user_type=wanted.type
    )
    async with changing(request) as console:
        await admin_users.create(console, made)
    return reply({"user": wanted.user}, status=201)


async def _change(request: web.Request) -> web.Response:
    name = request.match_info["user"]
    allowed = '{"status": "enable" or "disable"}'
    wanted = await wanted_of(request, _Status, allowed)
    async with changing(request) as console:
        await admin_users.known(console, name)
        await admin_users.update(
            console, UserInfo(username=name, user_status=wanted.status)
        )
    return reply({"user": name})


async def _delete(request: web.Request) -> web.Response:
    Params(request.query)
    name = request.match_info["user"]
    async with changing(request) as console:
        await admin_users.delete(console, name)
    return reply({"user": name})


async def _put_policy(request: web.Request) -> web.Response:
    allowed = (
        f'{{"user": "NAME", "resource": "KIND:NAME", "actions": {_ACTIONS}, '
        '"decision": "Allow" or "Deny", "sources": ["IP[/BITS]", ...]}'
    )
    wanted = await wanted_of(request, _Policy, allowed)
    entry = PolicyEntryInfo(
        resource=wanted.resource,
        actions=wanted.actions,
        source_ips=wanted.sources,
        decision=wanted.decision,
    )
    async with changing(request) as console:
        await admin_users.put_policy(console, f"User:{wanted.user}", entry)
    return reply({"user": wanted.user, "resource": wanted.resource}, status=201)


async def _delete_policy(request: web.Request) -> web.Response:
    params = Params(request.query, "user", "resource")
    name, resource = params.text("user"), params.text("resource")
    async with changing(request) as console:
        await admin_users.delete_policies(console, f"User:{name}", resource)
    return reply({"user": name, "resource": resource})


ROUTES = [
    web.post("/api/users", _create),
    web.put("/api/users/{user}", _change),
    web.delete("/api/users/{user}", _delete),
    web.post("/api/policies", _put_policy),
    web.delete("/api/policies", _delete_policy),
]
