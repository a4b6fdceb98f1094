"""Retry policies of groups: between what administrators send and what routes keep."""

from __future__ import annotations

from ropeway.gateway.processors.context import Refusal
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.routing.api import RetryPolicy

_EXPONENTIAL = "EXPONENTIAL"
_CUSTOMIZED = "CUSTOMIZED"
_DEFAULT = RetryPolicy()
_MOST_DELAYS = 256
"""Each client of the group is told all of them; RocketMQ has 16 by default."""


def read(given: bodies.RetryPolicy) -> RetryPolicy:
    """What an administrator sent; the default one where details are missing.

    Raises:
        Refusal: It is no policy.
    """
    kind = given.type or _CUSTOMIZED
    if kind == _EXPONENTIAL:
        waits = given.exponential_retry_policy or bodies.ExponentialRetry()
        _check("initial", [waits.initial])
        _check("max", [waits.max])
        _check("multiplier", [waits.multiplier])
        return RetryPolicy(
            exponential=True,
            initial_ms=waits.initial,
            multiplier=waits.multiplier,
            max_ms=waits.max,
        )
    if kind != _CUSTOMIZED:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"type of groupRetryPolicy is {kind!r:.80}; "
            f"allowed: {_CUSTOMIZED}, {_EXPONENTIAL}",
        )
    if not given.customized_retry_policy:
        return _DEFAULT
    delays_ms = given.customized_retry_policy.next
    _check("next", delays_ms)
    if len(delays_ms) > _MOST_DELAYS:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"next of groupRetryPolicy has {len(delays_ms)} times; "
            f"allowed: {_MOST_DELAYS}",
        )
    return RetryPolicy(delays_ms=tuple(delays_ms))


def _check(name: str, numbers: list[int]) -> None:
    if not numbers or min(numbers) < 0:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"{name} of groupRetryPolicy is {numbers!s:.80}; allowed: from 0 on",
        )


def show(policy: RetryPolicy) -> bodies.RetryPolicy:
    """What an administrator is shown."""
    if policy.exponential:
        return bodies.RetryPolicy(
            type=_EXPONENTIAL,
            exponential_retry_policy=bodies.ExponentialRetry(
                initial=policy.initial_ms,
                max=policy.max_ms,
                multiplier=policy.multiplier,
            ),
        )
    if policy.delays_ms == _DEFAULT.delays_ms:
        return bodies.RetryPolicy(type=_CUSTOMIZED)
    return bodies.RetryPolicy(
        type=_CUSTOMIZED,
        customized_retry_policy=bodies.CustomizedRetry(list(policy.delays_ms)),
    )
