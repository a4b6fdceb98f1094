"""How a cluster differs from what a file declares, and what makes it alike."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET, structs

from ropeway.client import (
    Admin,
    admin_groups,
    admin_quotas,
    admin_topics,
    admin_users,
)
from ropeway.client.admin_quotas import Quota
from ropeway.gateway.cli.declared import given
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.group import changes_of, settings_of
from ropeway.gateway.cli.target import secret_in
from ropeway.gateway.cli.topic_views import users_topics
from ropeway.gateway.node.names import is_listed_group
from ropeway.gateway.topics_config import TOPIC_QUEUES
from ropeway.gateway.wire.access_bodies import PolicyEntryInfo, UserInfo

if TYPE_CHECKING:
    from ropeway.gateway.cli.declared import Declared, Policy, QuotaSetup

Act = Callable[[Admin], Coroutine[Any, Any, None]]


class Difference(NamedTuple):
    """Something that is to be created, changed or deleted."""

    action: str
    """create, update or delete."""
    kind: str
    name: str
    before: dict[str, Any]
    """What differs, as it is now."""
    after: dict[str, Any]
    """And as it is to be."""
    act: Act
    """Makes it so."""


async def differences(
    admin: Admin, declared: Declared, *, prune: bool
) -> list[Difference]:
    """Find all differences, in the order in which they can be mended.

    Args:
        admin: Asks.
        declared: What is to be.
        prune: Also what the sections of the file do not name, to be deleted.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
        MisusedError: A user is to be created whose password cannot be read.
    """
    found: list[Difference] = []
    if declared.topics is not UNSET:
        found += await _topics(admin, declared.topics)
    if declared.groups is not UNSET:
        found += await _groups(admin, declared.groups)
    if declared.users is not UNSET:
        found += await _users(admin, declared.users)
    if declared.policies is not UNSET:
        found += await _policies(admin, declared.policies)
    if declared.quotas is not UNSET:
        found += await _quotas(admin, declared.quotas)
    kept = [one for one in found if one.action != "delete"]
    # Policies go before their users.
    gone = [one for one in reversed(found) if one.action == "delete"]
    return [*kept, *gone] if prune else kept


async def _topics(admin: Admin, wanted: dict[str, Any]) -> list[Difference]:
    there = await users_topics(admin)
    found = []
    for name, setup in wanted.items():
        goal = given(setup)
        if name not in there:
            found.append(_new("topic", name, goal, _put_topic(name, goal)))
            continue
        for broker, config in (await admin_topics.configs(admin, name)).items():
            now = {
                "queues": config.write_queue_nums,
                "perm": config.perm,
                "attributes": {
                    key: config.attributes.get(key, "")
                    for key in goal.get("attributes", ())
                },
            }
            full = {**now, **goal}
            if full != now:
                act = _put_topic(name, full, order=config.order)
                found.append(_changed("topic", f"{name} on {broker}", now, full, act))
    found += [
        _gone("topic", name, _later(Admin.delete_topic, name))
        for name in there
        if name not in wanted
    ]
    return found


def _put_topic(name: str, goal: dict[str, Any], *, order: bool = False) -> Act:
    async def put(admin: Admin) -> None:
        await admin.create_topic(
            name,
            goal.get("queues", TOPIC_QUEUES),
            perm=goal.get("perm", 6),
            order=order,
            attributes=goal.get("attributes"),
        )

    return put


async def _groups(admin: Admin, wanted: dict[str, Any]) -> list[Difference]:
    found = []
    for name, setup in wanted.items():
        goal = given(setup)
        fields = changes_of(**goal)
        config = await admin_groups.config(admin, name)
        if config is None:
            act = _later(admin_groups.create, name, fields)
            found.append(_new("group", name, goal, act))
            continue
        now = structs.asdict(settings_of(config))
        if (full := {**now, **goal}) != now:
            act = _later(admin_groups.update, name, fields)
            found.append(_changed("group", name, now, full, act))
    for name in await admin.groups():
        own = not is_listed_group(name)
        if name not in wanted and not own:
            found.append(_gone("group", name, _later(Admin.delete_group, name)))
    return found


async def _users(admin: Admin, wanted: dict[str, Any]) -> list[Difference]:
    there = {one.username or "": one for one in await admin_users.users(admin)}
    found = []
    for name, setup in wanted.items():
        goal = given(setup)
        file = goal.pop("password_file", None)
        if name not in there:
            act = _later(admin_users.create, _new_user(name, goal, file))
            found.append(_new("user", name, goal, act))
            continue
        now = {"type": there[name].user_type, "status": there[name].user_status}
        if (full := {**now, **goal}) != now:
            info = _user(name, goal)
            act = _later(admin_users.update, info)
            found.append(_changed("user", name, now, full, act))
    for name, user in there.items():
        # Who deletes those may lock everybody out.
        if name not in wanted and user.user_type != "Super":
            act = _later(admin_users.delete, name)
            found.append(_gone("user", name, act))
    return found


def _user(name: str, goal: dict[str, Any], password: str | None = None) -> UserInfo:
    return UserInfo(
        username=name,
        password=password,
        user_type=goal.get("type"),
        user_status=goal.get("status"),
    )


def _new_user(name: str, goal: dict[str, Any], file: str | None) -> UserInfo:
    # Read before anything is changed, so that nothing is left half-done.
    if file is None:
        raise MisusedError(f"user {name} does not exist yet; give a password_file")
    return _user(name, {"type": "Normal", **goal}, secret_in(file))


async def _policies(admin: Admin, wanted: list[Policy]) -> list[Difference]:
    there = {
        ((info.subject or "").removeprefix("User:"), entry.resource or ""): entry
        for info in await admin_users.policies(admin)
        for policy in info.policies or ()
        if policy.policy_type != "Default"
        for entry in policy.entries or ()
    }
    found = []
    for one in wanted:
        goal = _entry(sorted(one.actions), one.decision, sorted(one.sources))
        act = _put_policy(one)
        name = f"{one.user} {one.resource}"
        entry = there.pop((one.user, one.resource), None)
        if entry is None:
            found.append(_new("policy", name, goal, act))
            continue
        actions, sources = sorted(entry.actions or ()), sorted(entry.source_ips or ())
        now = _entry(actions, entry.decision or "", sources)
        if now != goal:
            found.append(_changed("policy", name, now, goal, act))
    for user, resource in there:
        act = _later(admin_users.delete_policies, f"User:{user}", resource)
        found.append(_gone("policy", f"{user} {resource}", act))
    return found


def _entry(actions: list[str], decision: str, sources: list[str]) -> dict[str, Any]:
    return {"actions": actions, "decision": decision, "sources": sources}


def _put_policy(one: Policy) -> Act:
    entry = PolicyEntryInfo(
        resource=one.resource,
        actions=one.actions,
        source_ips=one.sources,
        decision=one.decision,
    )
    return _later(admin_users.put_policy, f"User:{one.user}", entry)


async def _quotas(admin: Admin, wanted: list[QuotaSetup]) -> list[Difference]:
    there = {
        (one.kind, one.name): one.quota for one in await admin_quotas.listed(admin)
    }
    found = []
    for one in wanted:
        goal = given(one)
        kind = "topic" if "topic" in goal else "group"
        key = kind, goal.pop(kind)
        quota = there.pop(key, None)
        now = _limits(quota or Quota())
        # 0 is how no limit is asked for.
        full = {**now, **{limit: value or None for limit, value in goal.items()}}
        if full == now:
            continue
        limits = Quota(**{f"{limit}_per_s": value for limit, value in goal.items()})
        act = _later(admin_quotas.set_limits, *key, limits)
        name = " ".join(key)
        if quota is None:
            found.append(_new("quota", name, goal, act))
        else:
            found.append(_changed("quota", name, now, full, act))
    found += [
        _gone("quota", " ".join(key), _later(admin_quotas.delete, *key))
        for key in there
    ]
    return found


def _limits(quota: Quota) -> dict[str, int | None]:
    members = structs.asdict(quota).items()
    return {name.removesuffix("_per_s"): value for name, value in members}


def _later(function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> Act:
    return lambda admin: function(admin, *args)


def _new(kind: str, name: str, goal: dict[str, Any], act: Act) -> Difference:
    return Difference("create", kind, name, {}, goal, act)


def _changed(
    kind: str, name: str, now: dict[str, Any], full: dict[str, Any], act: Act
) -> Difference:
    differing = [key for key in full if full[key] != now.get(key)]
    before = {key: now.get(key) for key in differing}
    return Difference(
        "update", kind, name, before, {key: full[key] for key in differing}, act
    )


def _gone(kind: str, name: str, act: Act) -> Difference:
    return Difference("delete", kind, name, {}, {}, act)
