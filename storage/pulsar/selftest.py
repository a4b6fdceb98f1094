"""What Pulsar must have before a log may be kept there: checked at start, in words.

Each check names the setting and how to set it. With `prepare` the policies of the
namespace are set instead, and the log says so; `public/default` is only looked at.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from ropeway.storage.api import LogUnfitError
from ropeway.storage.pulsar.admin import SHOWN_S
from ropeway.storage.pulsar.native import SETTINGS
from ropeway.storage.pulsar.pulsar_log_config import MIB
from ropeway.storage.pulsar.rest import NotPermittedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ropeway.storage.pulsar.admin import Admin

OLDEST_VERSION = (3, 0)
"""The first long-term release with `ExclusiveWithFencing`."""

INDEXING = "AppendIndexMetadataInterceptor"
"""What counts the messages of a topic (PIP-70)."""

MIN_MESSAGE_BYTES = 4 * MIB + 128 * 1024
"""RocketMQ's largest default body, its properties, and a pack's tables."""

PUBLIC = "public/default"
"""Pulsar's own default namespace: applications that name none are in it, so nothing
of it is ever changed."""

_log = structlog.get_logger()


class PulsarUnfitError(LogUnfitError):
    """Pulsar lacks something; the text says what, and how it is set."""


class Policy(NamedTuple):
    """One policy of a namespace that the log depends on."""

    path: str
    """In the admin REST."""
    value: object
    """What `prepare` sets."""
    complaint: Callable[[Mapping[str, Any], Mapping[str, str]], str | None]
    """Asked with the policies and the broker's settings; None where all is well."""
    remedy: str
    """Arguments of `pulsar-admin namespaces`."""


def _deduplication(
    policies: Mapping[str, Any], broker: Mapping[str, str]
) -> str | None:
    on = policies.get("deduplicationEnabled")
    if on is None:
        on = broker.get("brokerDeduplicationEnabled") == "true"
    return None if on else "deduplication is off: a message sent again is stored twice"


def _kept(policies: Mapping[str, Any], broker: Mapping[str, str]) -> dict[str, int]:
    return policies.get("retention_policies") or {
        "retentionTimeInMinutes": int(broker.get("defaultRetentionTimeInMinutes", 0)),
        "retentionSizeInMB": int(broker.get("defaultRetentionSizeInMB", 0)),
    }


def _retention(policies: Mapping[str, Any], broker: Mapping[str, str]) -> str | None:
    kept = _kept(policies, broker)
    if kept["retentionTimeInMinutes"] and kept["retentionSizeInMB"]:
        return None
    return "retention is 0: acknowledged messages are deleted when nobody has read them"


def _deletion(policies: Mapping[str, Any], broker: Mapping[str, str]) -> str | None:
    inactive = policies.get("inactive_topic_policies")
    if inactive is None:
        deletes = broker.get("brokerDeleteInactiveTopicsEnabled", "true") == "true"
    else:
        deletes = inactive["deleteWhileInactive"]
    return "inactive topics are deleted" if deletes else None


def _creation(policies: Mapping[str, Any], broker: Mapping[str, str]) -> str | None:
    override = policies.get("autoTopicCreationOverride")
    if override is None:
        makes = broker.get("allowAutoTopicCreation", "true") == "true"
    else:
        makes = override["allowAutoTopicCreation"]
    return "topics come back by themselves after they were deleted" if makes else None


POLICIES = [
    Policy(
        "deduplication",
        True,
        _deduplication,
        "set-deduplication --enable",
    ),
    Policy(
        "retention",
        {"retentionTimeInMinutes": 3 * 24 * 60, "retentionSizeInMB": -1},
        _retention,
        "set-retention --time 72h --size -1",
    ),
    Policy(
        "inactiveTopicPolicies",
        {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": False,
        },
        _deletion,
        "set-inactive-topic-policies --disable-delete-while-inactive "
        "--max-inactive-duration 1m --delete-mode delete_when_no_subscriptions",
    ),
    Policy(
        "autoTopicCreation",
        {"allowAutoTopicCreation": False},
        _creation,
        "set-auto-topic-creation --disable",
    ),
]


async def check(
    admin: Admin, spaces: Mapping[str, Mapping[str, Any] | None], *, prepare: bool
) -> None:
    """Refuse a Pulsar that cannot keep a log.

    Args:
        admin: Its admin REST.
        spaces: The policies of each namespace; None where there is no such one.
        prepare: Make what is missing, where we may.

    Raises:
        PulsarUnfitError: Something is missing.
        LogUnavailableError: The admin REST does not answer, or does not permit it.
    """
    broker = await check_brokers(admin)
    for space, policies in spaces.items():
        await _check_namespace(admin, space, policies, broker, prepare=prepare)


async def check_brokers(admin: Admin) -> Mapping[str, str]:
    """Refuse brokers that are too old, or take too little; returns their settings.

    Raises:
        PulsarUnfitError: They are.
        LogUnavailableError: The admin REST does not answer, or does not permit it.
    """
    _check_version(await admin.version())
    broker = await admin.configuration() or {}
    _check_size(broker)
    return broker


async def check_indexes(admin: Admin) -> None:
    """Refuse brokers whose entries do not tell their index.

    Where brokers do not show their settings to us, the entries themselves tell, later.

    Raises:
        PulsarUnfitError: They do not.
        LogUnavailableError: The admin REST does not answer.
    """
    broker = await admin.configuration()
    if broker is not None and (
        INDEXING not in broker.get("brokerEntryMetadataInterceptors", "")
        or broker.get("exposingBrokerEntryMetadataToClientEnabled") != "true"
    ):
        raise PulsarUnfitError(
            f"Pulsar's brokers do not tell the index of an entry; {SETTINGS}"
        )


async def retention_ms(admin: Admin, space: str) -> int | None:
    """How long a namespace keeps messages that no subscription holds; None for ever.

    Raises:
        LogUnavailableError: The admin REST does not answer.
    """
    policies = await admin.policies(space) or {}
    minutes = _kept(policies, await admin.configuration() or {})[
        "retentionTimeInMinutes"
    ]
    return None if minutes < 0 else minutes * 60_000


def _check_version(version: str) -> None:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise PulsarUnfitError(
            f"Pulsar is of version {version}; allowed: from {oldest}"
        )


def _check_size(broker: Mapping[str, str]) -> None:
    largest = int(broker.get("maxMessageSize", MIN_MESSAGE_BYTES))
    if largest < MIN_MESSAGE_BYTES:
        raise PulsarUnfitError(
            f"the brokers' maxMessageSize is {largest}; allowed: from "
            f"{MIN_MESSAGE_BYTES}; set it in broker.conf, and the bookies' "
            "nettyMaxFrameSizeBytes above it"
        )


async def _check_namespace(
    admin: Admin,
    space: str,
    policies: Mapping[str, Any] | None,
    broker: Mapping[str, str],
    *,
    prepare: bool,
) -> None:
    prepare = prepare and space != PUBLIC
    if policies is None:
        if not prepare:
            raise PulsarUnfitError(missing(space))
        try:
            policies = await admin.make_namespace(space)
        except NotPermittedError as error:
            raise PulsarUnfitError(missing(space)) from error
        _log.warning("namespace of Pulsar made", namespace=space)
    for wait_s in SHOWN_S:
        wrong = list(complaints(space, policies, broker))
        if not wrong:
            return
        for policy, text in wrong:
            if not prepare:
                raise PulsarUnfitError(text)
            try:
                await admin.set_policy(space, policy.path, policy.value)
            except NotPermittedError as error:
                raise PulsarUnfitError(text) from error
            _log.warning(
                "policy of a namespace of Pulsar set",
                namespace=space,
                policy=policy.path,
                reason=policy.complaint(policies, broker),
            )
        await asyncio.sleep(wait_s)
        policies = await admin.policies(space) or {}
    raise PulsarUnfitError(f"{wrong[0][1]}; Pulsar has taken that, and not kept it")


def complaints(
    space: str, policies: Mapping[str, Any], broker: Mapping[str, str]
) -> Iterator[tuple[Policy, str]]:
    """The policies of a namespace that do not fit, and how each is set."""
    for policy in POLICIES:
        complaint = policy.complaint(policies, broker)
        if complaint is not None:
            remedy = f"pulsar-admin namespaces {policy.remedy} {space}"
            yield policy, f"namespace {space} of Pulsar: {complaint}; set: {remedy}"


def missing(space: str) -> str:
    """What is said where there is no such namespace, and how it is made."""
    tenant = space.partition("/")[0]
    return (
        f"Pulsar has no namespace {space}, or does not show it to this token's role; "
        f"make what is missing: pulsar-admin tenants create {tenant} --admin-roles "
        f"ROLE, pulsar-admin namespaces create {space}"
    )
