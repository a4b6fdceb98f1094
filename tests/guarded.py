"""A node that guards, and clients that sign, for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ropeway.acl.administration import Rule, Rules, User
from ropeway.acl.vault import new_key
from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.config import AclConfig
from ropeway.gateway.wire.header import row_of, to_fields
from tests.remoting import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.header import Header
    from tests.remoting import Frame, Remoting

ROOT, ALICE, NOBODY = "root", "alice", "nobody"
PASSWORD = "hush-hush"


def acl_of(data: Path, **changes: Any) -> AclConfig:
    """Access control by users, of whom one is super."""
    key, password = data / "key", data / "password"
    data.mkdir(parents=True, exist_ok=True)
    if not key.exists():
        key.write_text(new_key())
    password.write_text(PASSWORD)
    options = {"superuser": ROOT, "superuser_password_file": str(password)}
    settings: dict[str, Any] = {
        "hooks": ("users",),
        "options": {"users": options},
        "key_file": key,
        **changes,
    }
    return AclConfig(**settings)


@asynccontextmanager
async def guarded(
    data: Path, *rules: Rule, **changes: Any
) -> AsyncIterator[tuple[App, Remoting]]:
    """A node with a superuser, `alice` with these rules, and `nobody` with none."""
    async with running(data, acl=acl_of(data, **changes)) as (app, client):
        await populate(app, *rules)
        yield app, client


async def populate(app: App, *rules: Rule) -> None:
    """Make the users."""
    users = app.node.guard.administration
    for name in (ALICE, NOBODY):
        await users.create_user(User(name, PASSWORD))
    if rules:
        await users.add_rules(Rules(f"User:{ALICE}", rules))


def allow(resource: str, *actions: str) -> Rule:
    """A rule that allows."""
    return Rule(resource, actions or ("All",), allowed=True)


async def ask(
    client: Remoting,
    who: str,
    header: Header,
    body: bytes = b"",
    *,
    password: str = PASSWORD,
    **more: Any,
) -> Frame:
    """Have a user ask for something."""
    credentials = Credentials(access_key=who, secret_key=password)
    fields = signed(to_fields(header), body, credentials)
    return await client.ask(int(row_of(type(header)).code), body, fields=fields, **more)
