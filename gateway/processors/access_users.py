"""Users of ACL 2.0: made, changed, deleted and listed by administrators.

Source: AdminBrokerProcessor.createUser and its likes, RocketMQ 5.5.0. There whoever may
look at the cluster reads every password; here only a superuser does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.acl.administration import RulesError, User
from ropeway.acl.api import StoreError
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import UserInfo
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.auth import (
    CreateUser,
    DeleteUser,
    GetUser,
    ListUsers,
    UpdateUser,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ropeway.acl.administration import Administration

_SUPER, _NORMAL = "Super", "Normal"
_ENABLE, _DISABLE = "enable", "disable"


def administration(context: Context) -> Administration:
    """Where users and rules are changed.

    Raises:
        Refusal: Nothing of that kind is configured.
    """
    guard = context.node.guard
    found = guard.administration if guard is not None else None
    if found is None:
        raise Refusal(
            ResponseCode.ILLEGAL_OPERATION,
            "no users are kept here; acl.hooks with `users` turns them on",
        )
    return found


async def changing(change: Awaitable[None]) -> Answer:
    """Make a change, and answer for it.

    Raises:
        Refusal: It is not allowed, or cannot be kept.
    """
    try:
        await change
    except RulesError as error:
        raise Refusal(ResponseCode.NO_PERMISSION, str(error)) from error
    except StoreError as error:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from error
    return Answer()


@handles(CreateUser, on_cluster(UPDATE))
async def create_user(request: CreateUser, context: Context) -> Answer:
    """Create a user."""
    name, given = _named(request.username), _given(context)
    users = administration(context)
    is_super = _choice("userType", given.user_type, _SUPER, _NORMAL) or False
    if is_super:
        _refuse_unless_super(context)
    enabled = _choice("userStatus", given.user_status, _ENABLE, _DISABLE)
    user = User(name, given.password or "", is_super, enabled is not False)
    return await changing(users.create_user(user))


@handles(UpdateUser, on_cluster(UPDATE))
async def update_user(request: UpdateUser, context: Context) -> Answer:
    """Change what is given of a user."""
    name, given = _named(request.username), _given(context)
    users = administration(context)
    is_super = _choice("userType", given.user_type, _SUPER, _NORMAL)
    old = users.users().get(name)
    if is_super or (old is not None and old.super):
        _refuse_unless_super(context)
    return await changing(
        users.update_user(
            name,
            password=given.password or None,
            super=is_super,
            enabled=_choice("userStatus", given.user_status, _ENABLE, _DISABLE),
        )
    )


@handles(DeleteUser, on_cluster(UPDATE))
async def delete_user(request: DeleteUser, context: Context) -> Answer:
    """Delete a user and its rules."""
    name = _named(request.username)
    users = administration(context)
    if (old := users.users().get(name)) is not None and old.super:
        _refuse_unless_super(context)
    return await changing(users.delete_user(name))


@handles(GetUser, on_cluster(GET))
def get_user(request: GetUser, context: Context) -> Answer:
    """A user; nothing where there is none."""
    user = administration(context).users().get(_named(request.username))
    return Answer(body=bodies.encode(_info(user, context)) if user else b"")


@handles(ListUsers, on_cluster(GET))
def list_users(request: ListUsers, context: Context) -> Answer:
    """All users whose names have a text in them."""
    users = administration(context).users()
    found = [
        _info(user, context)
        for name, user in sorted(users.items())
        if (request.filter or "") in name
    ]
    return Answer(body=bodies.encode(found) if found else b"")


def _named(username: str | None) -> str:
    if not username:
        raise Refusal(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return username


def _given(context: Context) -> UserInfo:
    return bodies.decode(UserInfo, context.body or b"{}")


def _choice(what: str, given: str | None, yes: str, no: str) -> bool | None:
    if not given:
        return None
    if (lower := given.lower()) in (yes.lower(), no.lower()):
        return lower == yes.lower()
    raise Refusal(
        ResponseCode.INVALID_PARAMETER, f"{what} is {given!r:.40}; allowed: {yes}, {no}"
    )


def _refuse_unless_super(context: Context) -> None:
    if not _is_super(context):
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            "The super user can only be changed by a super user",
        )


def _is_super(context: Context) -> bool:
    return context.principal is not None and context.principal.super


def _info(user: User, context: Context) -> UserInfo:
    return UserInfo(
        username=user.name,
        password=user.password if _is_super(context) else None,
        user_type=_SUPER if user.super else _NORMAL,
        user_status=_ENABLE if user.enabled else _DISABLE,
    )
