"""Signing in to the page, and finding who asks: by a cookie that no script can read.

Only our own page can send the cookie (SameSite=Strict), and only to our API. Without
access control nobody signs in.
"""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from ropeway.acl.api import Channel, Need, Source
from ropeway.client.credentials import Credentials
from ropeway.gateway.http.on_behalf import OnBehalf, console_of
from ropeway.gateway.http.params import Params, RefusedError, decode_body
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.sessions import SESSIONS
from ropeway.gateway.http.state import STATE, state_of
from ropeway.gateway.processors.needs import GET, cluster_need
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ropeway.gateway.http.console import Console
    from ropeway.gateway.http.state import State

PATH = "/api/session"
COOKIE = "ropeway-session"
_MAX_CHARACTERS = 8192
"""Of what somebody signs in with: tokens are long."""


class _Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody signs in with."""

    access_key: str
    """A user's name, or a token."""
    secret_key: str = ""
    """The password; tokens need none."""


def is_needed(request: web.Request) -> bool:
    """Whether only those are answered who have signed in."""
    acl = request.app[STATE].app.node.config.acl
    return acl is not None and not acl.dry_run


async def find(request: web.Request) -> State:
    """What to answer a request with.

    Raises:
        RefusedError: Who asks has to sign in.
    """
    if not is_needed(request):
        return request.app[STATE]
    sessions = request.app[SESSIONS]
    token = request.cookies.get(COOKIE, "")
    state = await sessions.find(token, source_of(request))
    if state is None:
        raise RefusedError("sign in first: access control is on", 401)
    return state


@asynccontextmanager
async def changing(request: web.Request) -> AsyncIterator[Console]:
    """A console for what changes something: in the name of who looks at the page.

    That is so where nobody signs in, too: the audit log has its address.
    """
    state = state_of(request)
    if state.user is not None:
        yield state.console
        return
    user = OnBehalf(state.app.node.forwarder, source_of(request), None)
    async with console_of(state.app, user) as console:
        yield console


async def require(state: State, *needs: Need) -> None:
    """See that a user may know what this node tells without asking a broker.

    Raises:
        RefusedError: It may not.
    """
    guard, user = state.app.node.guard, state.user
    if guard is None or user is None:
        return
    verdict = await guard.permit(user.principal, needs, user.source, "PAGE")
    if not verdict.allowed:
        raise RefusedError(verdict.remark, 403)


async def offered(state: State, **wanted: Iterable[Need]) -> list[str]:
    """What the page offers to change: nothing where it only shows.

    Args:
        state: Of the user who asks.
        wanted: What each change needs, by its name.
    """
    if not state.config.writable:
        return []
    guard, user = state.app.node.guard, state.user
    if guard is None or user is None:
        return list(wanted)
    return [
        name
        for name, needs in wanted.items()
        if await guard.may(user.principal, tuple(needs), user.source)
    ]


async def check_metrics(request: web.Request) -> None:
    """See that somebody may read the metrics, where they are guarded.

    Raises:
        RefusedError: The header `Authorization` names nobody who may.
    """
    state = request.app[STATE]
    if not (state.config.guard_metrics and is_needed(request)):
        return
    guard = state.app.node.guard
    assert guard is not None, "access control is on"
    source = source_of(request)
    credentials = _authorization(request.headers.get("Authorization", ""))
    principal = await request.app[SESSIONS].prove(credentials, source, "METRICS")
    needs = (cluster_need(state.app.node.config.cluster, (GET,)),)
    verdict = await guard.permit(principal, needs, source, "METRICS")
    if not verdict.allowed:
        raise RefusedError(verdict.remark, 403)


def _authorization(header: str) -> Credentials:
    """A user with its password, or a token."""
    scheme, _, given = header.partition(" ")
    if scheme.lower() == "bearer" and given.isascii():
        return Credentials(access_key=given.strip(), secret_key="")
    try:
        name, _, password = base64.b64decode(given).decode().partition(":")
    except ValueError:
        # Not base64, or not of UTF-8; or not ASCII, as aiohttp lets headers be.
        name = password = ""
    if scheme.lower() != "basic" or not name:
        raise RefusedError(
            "metrics need the header Authorization; allowed: Basic with a user and its "
            "password, or Bearer with a token",
            401,
        )
    return Credentials(access_key=name, secret_key=password)


def source_of(request: web.Request) -> Source:
    """Where a request comes from: the connection's other end, whatever headers say."""
    return Source(host_port.plain_ip(request.remote or ""), Channel.HTTP)


async def _who(request: web.Request) -> web.Response:
    """Whether somebody has to sign in, and who has."""
    Params(request.query)
    needed = is_needed(request)
    name = None
    if needed and request.cookies.get(COOKIE):
        try:
            user = (await find(request)).user
        except RefusedError:
            user = None
        name = user.principal.name if user and user.principal else None
    writable = request.app[STATE].config.writable
    return reply({"needed": needed, "name": name, "writable": writable})


async def _sign_in(request: web.Request) -> web.Response:
    Params(request.query)
    if not is_needed(request):
        raise RefusedError("nobody signs in: access control is off", 409)
    given = _read(await request.read())
    credentials = Credentials(access_key=given.access_key, secret_key=given.secret_key)
    token = await request.app[SESSIONS].open(credentials, source_of(request))
    answer = reply({"signed_in": True})
    answer.set_cookie(
        COOKIE,
        token,
        path="/api",
        httponly=True,
        samesite="Strict",
        secure=request.app[STATE].config.tls,
    )
    return answer


def _read(body: bytes) -> _Given:
    allowed = '{"access_key": "...", "secret_key": "..."}'
    given = decode_body(body, _Given, allowed)
    if not 0 < len(given.access_key) <= _MAX_CHARACTERS:
        raise RefusedError(
            f"access_key has {len(given.access_key)} characters; allowed: 1 to "
            f"{_MAX_CHARACTERS}"
        )
    return given


async def _sign_out(request: web.Request) -> web.Response:
    Params(request.query)
    if is_needed(request):
        await request.app[SESSIONS].close(request.cookies.get(COOKIE, ""))
    answer = reply({"signed_in": False})
    answer.del_cookie(COOKIE, path="/api")
    return answer


ROUTES = [
    web.get(PATH, _who),
    web.post(PATH, _sign_in),
    web.delete(PATH, _sign_out),
]
