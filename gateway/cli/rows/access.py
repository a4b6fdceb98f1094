"""Users, policies, quotas, contexts, and what a file declares."""

from __future__ import annotations

from typing import Any

from msgspec import field

from ropeway.gateway.cli.rows import Row


class UserRow(Row, frozen=True):
    """A user."""

    user: str | None
    type: str | None
    status: str | None


class PolicyRow(Row, frozen=True):
    """A rule for a user and a resource."""

    user: str
    resource: str | None
    actions: list[str]
    decision: str | None
    sources: list[str]
    policy: str | None


class Decision(Row, frozen=True):
    """What access control would decide, and why."""

    principal: str | None
    allowed: bool
    rule: str
    reason: str
    hook: str
    dry_run: bool


class QuotaRow(Row, frozen=True):
    """The limits of a topic or a group, in a second; null where there is none."""

    kind: str
    name: str
    send_requests: int | None
    send_bytes: int | None
    read_requests: int | None
    read_bytes: int | None
    cold_bytes: int | None
    throttled: int


class ContextRow(Row, frozen=True):
    """A saved context."""

    current: bool
    name: str
    name_server: str
    access: str
    tls: bool


class SettingRow(Row, frozen=True):
    """A setting that a command would use, and the place that it is from."""

    setting: str
    value: str | bool
    from_: str = field(name="from")


class DifferenceRow(Row, frozen=True):
    """How something differs from what a file declares; the members that differ."""

    action: str
    kind: str
    name: str
    before: dict[str, Any]
    after: dict[str, Any]
