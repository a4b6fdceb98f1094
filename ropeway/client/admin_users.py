"""Users and their policies (ACL 2.0), on every broker.

Brokers of Ropeway share users, those of RocketMQ have their own: each is asked, and
what another one has done already is no error.

Source: DefaultMQAdminExtImpl.createUser and its likes, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from ropeway.client.errors import AdminError, BadResponseError, ResponseError
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
)
from ropeway.gateway.wire.commands.auth import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    ListAcls,
    ListUsers,
    UpdateUser,
)

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.gateway.wire.header import Header

T = TypeVar("T")

_IS_THERE = "The user is existed"
_IS_GONE = "is not exist"


async def users(admin: Admin) -> list[UserInfo]:
    """All users of the first broker, sorted.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    body = await _first(admin, ListUsers())
    found = _decoded(body, list[UserInfo])
    return sorted(found, key=lambda user: user.username or "")


async def known(admin: Admin, name: str) -> UserInfo:
    """The user of a name.

    Raises:
        AdminError: There is none.
        RemotingError: A broker cannot be reached, or refused.
    """
    for user in await users(admin):
        if user.username == name:
            return user
    raise AdminError(f"user {name} does not exist")


async def create(admin: Admin, user: UserInfo) -> None:
    """Create a user on every broker.

    Raises:
        AdminError: There is one of the name.
        ResponseError: A broker refused: no users are kept.
        RemotingError: A broker cannot be reached.
    """
    header = CreateUser(username=user.username)
    there = AdminError(f"user {user.username} exists already")
    await _everywhere(admin, header, bodies.encode(user), done=(_IS_THERE, there))


async def update(admin: Admin, user: UserInfo) -> None:
    """Change what is given of a user, on every broker.

    Raises:
        ResponseError: A broker refused: there is none of the name.
        RemotingError: A broker cannot be reached.
    """
    await admin.ask_masters(UpdateUser(username=user.username), bodies.encode(user))


async def delete(admin: Admin, name: str) -> None:
    """Delete a user with its policies, on every broker.

    Raises:
        AdminError: There is none of the name.
        RemotingError: A broker cannot be reached, or refused.
    """
    await known(admin, name)
    gone = AdminError(f"user {name} does not exist")
    await _everywhere(admin, DeleteUser(username=name), done=(_IS_GONE, gone))


async def policies(
    admin: Admin, subject: str = "", resource: str = ""
) -> list[AclInfo]:
    """The policies of all subjects whose names have a text in them.

    Args:
        admin: Asks the first broker.
        subject: A text in `User:NAME`; all where it is empty.
        resource: A text in `Topic:NAME` and the like.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    header = ListAcls(subject_filter=subject or None, resource_filter=resource or None)
    return _decoded(await _first(admin, header), list[AclInfo])


async def known_policies(
    admin: Admin, subject: str, resource: str | None = None
) -> list[PolicyEntryInfo]:
    """The policies of a subject, or the one of a resource.

    Raises:
        AdminError: There is none.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = [
        entry
        for info in await policies(admin, subject)
        if info.subject == subject
        for policy in info.policies or ()
        for entry in policy.entries or ()
        if resource in (None, entry.resource)
    ]
    if not found:
        raise _no_policy(subject, resource)
    return found


def _no_policy(subject: str, resource: str | None) -> AdminError:
    of = f" of {resource}" if resource else ""
    return AdminError(f"{subject} has no policy{of}")


async def put_policy(admin: Admin, subject: str, entry: PolicyEntryInfo) -> None:
    """Add a policy to a subject, or replace the one of the same resource.

    Raises:
        AdminError: There is no such user.
        ResponseError: A broker refused: it is what no policy can be.
        RemotingError: A broker cannot be reached.
    """
    policy = PolicyInfo(policy_type="Custom", entries=[entry])
    info = AclInfo(subject=subject, policies=[policy])
    gone = AdminError(f"{subject} does not exist")
    await _everywhere(
        admin, CreateAcl(subject=subject), bodies.encode(info), done=(_IS_GONE, gone)
    )


async def delete_policies(
    admin: Admin, subject: str, resource: str | None = None
) -> None:
    """Delete the policies of a subject, or the one of a resource.

    Raises:
        AdminError: There are none.
        RemotingError: A broker cannot be reached, or refused.
    """
    header = DeleteAcl(subject=subject, resource=resource)
    await _everywhere(admin, header, done=(_IS_GONE, _no_policy(subject, resource)))


async def _everywhere(
    admin: Admin, header: Header, body: bytes = b"", *, done: tuple[str, AdminError]
) -> None:
    """Ask each master; what the first has done may be known to the others.

    Brokers refuse what is so already by NO_PERMISSION, as if the user were at fault;
    `done` has the words by which that is known, and the error that it is.
    """
    words, known = done
    for number, address in enumerate(await admin.masters()):
        try:
            await admin.ask(address, header, body)
        except ResponseError as error:
            if words not in error.remark:
                raise
            if number == 0:
                raise known from error


async def _first(admin: Admin, header: Header) -> bytes:
    for address in await admin.masters():
        return (await admin.ask(address, header)).body
    raise AdminError("there is no broker")


def _decoded(body: bytes, kind: type[list[T]]) -> list[T]:
    try:
        # Nothing is told by no body.
        return msgspec.json.decode(body or b"[]", type=kind)
    except msgspec.DecodeError as error:
        raise BadResponseError(f"users or policies cannot be read: {error}") from error
