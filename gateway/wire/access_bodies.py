"""JSON bodies of users and access rules: UserInfo and AclInfo of RocketMQ 5.5.0."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body


class UserInfo(Body, frozen=True, omit_defaults=True):
    """A user; what is not given stays as it is, or is what RocketMQ takes for it."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    """Super or Normal."""
    user_status: str | None = None
    """enable or disable."""


class PolicyEntryInfo(Body, frozen=True):
    """A rule for one resource."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None
    """Allow or Deny."""


class PolicyInfo(Body, frozen=True, omit_defaults=True):
    """The custom rules of a subject, or its default ones."""

    policy_type: str | None = None
    """Custom or Default; Custom where it is not given."""
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(Body, frozen=True, omit_defaults=True):
    """All rules of a subject."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None


class AccessExplanation(Body, frozen=True):
    """Ours: what would be decided, and why."""

    principal: str | None
    """None where nobody has the name."""
    allowed: bool
    rule: str
    reason: str
    hook: str
    """What decided; empty where nothing had an opinion."""
    dry_run: bool
