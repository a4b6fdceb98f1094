"""Settings: what a client says of itself, completed with what the server says.

Source: GrpcClientSettingsManager.java and ProxyConfig.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ropeway.gateway.grpc.message_decoder import named
from ropeway.gateway.grpc.protocol import (
    ClientType,
    Code,
    CustomizedBackoff,
    Duration,
    ExponentialBackoff,
    Settings,
)
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.lite import lite_attributes as lite
from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.wire import properties as wire_properties
from ropeway.routing.api import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.node.node import Node
    from ropeway.routing.api import RetryPolicy

RECEIVE_BATCH = 32
LONG_POLL_MS = 20_000
_SEND_ATTEMPTS = 3
_SEND_BACK_OFF = (10, 1000, 2.0)
"""First and longest wait in milliseconds, and by what it grows."""

_MAX_I32 = (1 << 31) - 1
_MAX_PROPERTIES = 32
_MAX_VALUE = 256
_MAX_PROPERTIES_BYTES = 4096
_LEGAL_KEY = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,63}\Z").match
LITE_CONSUMERS = frozenset(
    {ClientType.LITE_PUSH_CONSUMER, ClientType.LITE_SIMPLE_CONSUMER}
)
CONSUMERS = LITE_CONSUMERS | {
    ClientType.PUSH_CONSUMER,
    ClientType.SIMPLE_CONSUMER,
    ClientType.PULL_CONSUMER,
}


def check(settings: Settings) -> None:
    """Refuse settings of no client that is served here.

    Raises:
        RefusedError: Says what they lack.
    """
    kind = settings.client_type
    says = settings.WhichOneof("pub_sub")
    if says is None:
        raise RefusedError(
            Code.BAD_REQUEST, "there is no publishing or subscription data in settings"
        )
    wanted = "subscription" if kind in CONSUMERS else "publishing"
    if says != wanted or kind == ClientType.CLIENT_TYPE_UNSPECIFIED:
        raise RefusedError(
            Code.UNRECOGNIZED_CLIENT_TYPE,
            f"settings of client type {kind} with {says}; allowed: producers with "
            "publishing, consumers with subscription",
        )
    _check_properties(settings.client_properties)


def check_group(node: Node, settings: Settings, group_name: str) -> None:
    """Refuse a consumer of lite topics in a group of others, and the other way round.

    Source: ClientProcessor.validateLiteMode, RocketMQ 5.5.0.

    Raises:
        RefusedError: It is such a one, or wants lite topics of another topic.
    """
    group = node.groups.get(group_name)
    parent = lite.of_group(group.attributes).parent if group is not None else ""
    if settings.client_type not in LITE_CONSUMERS:
        if parent:
            raise RefusedError(
                Code.ILLEGAL_CONSUMER_GROUP,
                f"lite group must use LITE mode: {group_name}",
            )
        return
    if not parent:
        raise RefusedError(
            Code.ILLEGAL_CONSUMER_GROUP,
            f"regular group cannot use LITE mode: {group_name}; allowed: groups with "
            "lite.bind.topic",
        )
    for entry in settings.subscription.subscriptions:
        if named(entry.topic) != parent:
            raise RefusedError(
                Code.ILLEGAL_TOPIC,
                f"lite group {group_name} is expected to bind topic {parent}, but "
                f"actual is {named(entry.topic):.200}",
            )


def _check_properties(pairs: Mapping[str, str]) -> None:
    size = len(wire_properties.dump(pairs).encode())
    fits = len(pairs) <= _MAX_PROPERTIES and size <= _MAX_PROPERTIES_BYTES
    if fits and all(
        _LEGAL_KEY(key) and len(value) <= _MAX_VALUE for key, value in pairs.items()
    ):
        return
    raise RefusedError(
        Code.INVALID_CLIENT_PROPERTIES,
        f"{len(pairs)} client properties of {size} bytes; allowed: {_MAX_PROPERTIES} "
        f"of together {_MAX_PROPERTIES_BYTES}, values of up to {_MAX_VALUE} characters",
    )


def complete(node: Node, settings: Settings, group_name: str | None) -> Settings:
    """The settings that a client goes by."""
    made = Settings()
    made.CopyFrom(settings)
    made.metric.on = False
    if group_name is None:
        made.publishing.max_body_size = node.config.limits.message_bytes
        made.publishing.validate_message_type = True
        first_ms, most_ms, factor = _SEND_BACK_OFF
        made.backoff_policy.max_attempts = _SEND_ATTEMPTS
        made.backoff_policy.exponential_backoff.CopyFrom(
            _exponential(first_ms, most_ms, factor)
        )
        return made
    group = node.groups.get(group_name) or Group(name=group_name)
    subscription = made.subscription
    subscription.fifo = group.consume_message_orderly
    subscription.receive_batch_size = RECEIVE_BATCH
    subscription.long_polling_timeout.CopyFrom(_duration(LONG_POLL_MS))
    if made.client_type in LITE_CONSUMERS:
        subscription.lite_subscription_quota = min(
            lite.of_group(group.attributes).quota, _MAX_I32
        )
        subscription.max_lite_topic_size = lite_names.MAX_BYTES
    most = min(max(group.retry_max_times, 0), _MAX_I32 - 1)
    made.backoff_policy.max_attempts = most + 1
    _set_retries(made, group.retry_policy)
    return made


def _set_retries(made: Settings, policy: RetryPolicy) -> None:
    if policy.exponential:
        made.backoff_policy.exponential_backoff.CopyFrom(
            _exponential(policy.initial_ms, policy.max_ms, policy.multiplier)
        )
    else:
        made.backoff_policy.customized_backoff.CopyFrom(
            CustomizedBackoff(next=[_duration(one) for one in policy.delays_ms])
        )


def _exponential(first_ms: int, most_ms: int, factor: float) -> ExponentialBackoff:
    return ExponentialBackoff(
        initial=_duration(first_ms), max=_duration(most_ms), multiplier=factor
    )


def _duration(duration_ms: int) -> Duration:
    return Duration(seconds=duration_ms // 1000, nanos=duration_ms % 1000 * 1_000_000)
