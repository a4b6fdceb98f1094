"""The contract of users and rules that are changed while the server runs, as ACL 2.0's.

A hook that keeps some offers an `Administration`; the server's administrative requests
go to the first hook that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class User(Struct, frozen=True):
    """A user whom a hook keeps."""

    name: str
    password: str
    """What requests are signed with."""
    super: bool = False
    enabled: bool = True

    def __repr__(self) -> str:
        return f"User(name={self.name!r}, super={self.super}, enabled={self.enabled})"


class Rule(Struct, frozen=True):
    """What somebody may do, or not, to some resources."""

    resource: str
    """`Topic:name`, `Topic:prefix*`, `Topic:*`, or `*` for everything; likewise with
    the other kinds."""
    actions: tuple[str, ...]
    """Names of actions, or All."""
    allowed: bool
    sources: tuple[str, ...] = ()
    """IP addresses and networks that it holds for; nothing: everywhere."""


class Rules(Struct, frozen=True):
    """All rules of one subject. The default ones count where no custom one matches."""

    subject: str
    """`User:name`."""
    custom: tuple[Rule, ...] = ()
    default: tuple[Rule, ...] = ()

    def shown(self) -> dict[str, list[str]]:
        """The rules as people and the audit log read them."""
        return {"custom": _lines(self.custom), "default": _lines(self.default)}


def _lines(rules: tuple[Rule, ...]) -> list[str]:
    return [
        f"{'Allow' if one.allowed else 'Deny'} {','.join(one.actions)} {one.resource}"
        + (f" from {','.join(one.sources)}" if one.sources else "")
        for one in rules
    ]


class RulesError(Exception):
    """Users or rules cannot be changed so; the text says why, and is for the client."""


class UserExistsError(RulesError):
    """A user of that name is kept, also where this node cannot read it."""

    def __init__(self) -> None:
        super().__init__("The user is existed")


class Administration(Protocol):
    """Users and rules that are changed while the server runs.

    Changes raise `RulesError` for what is not allowed, and `StoreError`.
    """

    def users(self) -> Mapping[str, User]:
        """Every user by its name."""

    def rules(self) -> Mapping[str, Rules]:
        """Every subject's rules, by the subject."""

    async def create_user(self, user: User) -> None:
        """Create a user; there must be none of the name."""

    async def update_user(
        self,
        name: str,
        *,
        password: str | None = None,
        super: bool | None = None,  # noqa: A002 - RocketMQ's word
        enabled: bool | None = None,
    ) -> None:
        """Change what is given of a user that is there."""

    async def delete_user(self, name: str) -> None:
        """Delete a user and its rules; none is fine."""

    async def add_rules(self, rules: Rules) -> None:
        """Add rules, or replace those of the same resources; the user must be there."""

    async def delete_rules(
        self, subject: str, *, resource: str | None = None, default: bool = False
    ) -> None:
        """Delete a subject's rules, or only that of one resource."""
