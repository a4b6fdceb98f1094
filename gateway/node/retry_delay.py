"""How long a message waits until it comes again, by its group's retry policy.

For clients that leave it to the broker. Remoting consumers name a delay level when they
send a message back, or 0 for the level after the last, so it is not for them.

Source: ExponentialRetryPolicy.java and CustomizedRetryPolicy.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routing.api import RetryPolicy

_MOST_STEPS = 32
_SKIPPED = 2
"""The first two delay levels are too short for retries."""


def next_delay_ms(policy: RetryPolicy, reconsume_times: int) -> int:
    """The wait before the next time, in milliseconds.

    Args:
        policy: The group's.
        reconsume_times: How often the message has come again already, from 0.
    """
    times = max(reconsume_times, 0)
    if policy.exponential:
        factor: int = policy.multiplier ** min(times, _MOST_STEPS)
        return min(policy.max_ms, policy.initial_ms * factor)
    return policy.delays_ms[min(times + _SKIPPED, len(policy.delays_ms) - 1)]
