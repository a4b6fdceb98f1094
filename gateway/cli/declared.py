"""What a cluster is to have: topics, groups, users and so on, in a file of YAML.

A section that is left out is left alone. So is a member: it stays as it is, and is the
default in what is created.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.wire.commands.quotas import Rate


class TopicSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How a topic is to be set up on each broker."""

    queues: int | UnsetType = UNSET
    perm: int | UnsetType = UNSET
    attributes: dict[str, str] | UnsetType = UNSET


class GroupSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How a group is to be set up; as the options of `ropeway group create`."""

    consume: bool | UnsetType = UNSET
    broadcast: bool | UnsetType = UNSET
    in_order: bool | UnsetType = UNSET
    retries: int | UnsetType = UNSET
    retry_queues: int | UnsetType = UNSET
    read_at: str | UnsetType = UNSET


class UserSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How a user is to be; the password is used where the user is created."""

    type: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    password_file: str | UnsetType = UNSET


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy of a user for a resource."""

    user: str
    resource: str
    actions: list[str]
    decision: str = "Allow"
    sources: list[str] = []


class QuotaSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a topic or a group; as the options of `ropeway quota set`."""

    topic: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    send_requests: Rate | UnsetType = UNSET
    send_bytes: Rate | UnsetType = UNSET
    read_requests: Rate | UnsetType = UNSET
    read_bytes: Rate | UnsetType = UNSET
    cold_bytes: Rate | UnsetType = UNSET


class Declared(Struct, frozen=True, forbid_unknown_fields=True):
    """All that a file says."""

    topics: dict[str, TopicSetup | None] | UnsetType = UNSET
    groups: dict[str, GroupSetup | None] | UnsetType = UNSET
    users: dict[str, UserSetup | None] | UnsetType = UNSET
    policies: list[Policy] | UnsetType = UNSET
    quotas: list[QuotaSetup] | UnsetType = UNSET


_WORDS = {
    "perm": (2, 4, 6),
    "read_at": ("master", "slave"),
    "type": ("Super", "Normal"),
    "status": ("enable", "disable"),
    "decision": ("Allow", "Deny"),
}


def read(data: bytes, name: str) -> Declared:
    """Read a file.

    Args:
        data: What is in it.
        name: Its name, for the complaint.

    Raises:
        MisusedError: It is no YAML, or says what cannot be.
    """
    yaml = _yaml()
    try:
        found = msgspec.convert(yaml.safe_load(data) or {}, type=Declared)
    except (yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise MisusedError(
            f"{name}: {reason}; allowed: {', '.join(Declared.__struct_fields__)}"
        ) from error
    for place, value in _values(found):
        allowed = _WORDS.get(place.rpartition(".")[2])
        if allowed is not None and value not in allowed:
            words = ", ".join(map(str, allowed))
            raise MisusedError(f"{name}: {place} is {value!r}; allowed: {words}")
    pairs = Counter((one.user, one.resource) for one in found.policies or ())
    for (user, resource), count in pairs.items():
        if count > 1:
            raise MisusedError(
                f"{name}: {count} policies of {user} for {resource}; allowed: one"
            )
    owners = Counter(_quota_of(one, name) for one in found.quotas or ())
    for owner, count in owners.items():
        if count > 1:
            raise MisusedError(f"{name}: {count} quotas of {owner}; allowed: one")
    return found


def _quota_of(one: QuotaSetup, name: str) -> str:
    kinds = {"topic": one.topic, "group": one.group}
    owners = [f"{kind} {of}" for kind, of in kinds.items() if of is not UNSET]
    if len(owners) != 1:
        came = " and ".join(owners) or "nobody"
        raise MisusedError(f"{name}: a quota of {came}; allowed: a topic or a group")
    return owners[0]


def _yaml() -> Any:
    try:
        import yaml  # noqa: PLC0415 - of the extra `acl`
    except ImportError as error:
        raise CannotError(
            "PyYAML is not installed; it comes with: pip install ropeway[acl]"
        ) from error
    return yaml


def given(setup: Struct | None) -> dict[str, Any]:
    """The members that are given."""
    members = {} if setup is None else msgspec.structs.asdict(setup)
    return {name: value for name, value in members.items() if value is not UNSET}


def _values(found: Declared) -> list[tuple[str, Any]]:
    values = []
    for kind in ("topics", "groups", "users"):
        for name, setup in (getattr(found, kind) or {}).items():
            values += [(f"{kind}.{name}.{k}", v) for k, v in given(setup).items()]
    for one in found.policies or ():
        where = f"policies.{one.user} {one.resource}"
        values.append((f"{where}.decision", one.decision))
    return values
