"""What a step fails at ends it, or is put aside."""

from __future__ import annotations

import pytest

from ropeway.streams.failures import TOGETHER, Failures
from ropeway.streams.records import StepError


def test_without_a_place_for_it_the_step_fails_and_is_named() -> None:
    failures = Failures("divide", None)
    with pytest.raises(StepError, match="step 'divide' failed at 7: ValueError: no"):
        failures.put(("k", 7, 5), ValueError("no"))
    failures.send()


def test_what_is_put_aside_is_sent_together_and_never_too_much_kept() -> None:
    sent: list[int] = []
    failures = Failures("divide", lambda failed: sent.append(len(failed)))
    failures.send()
    for number in range(TOGETHER + 2):
        failures.put(("k", number, 5), ValueError("no"))
    failures.send()
    failures.send()
    assert sent == [TOGETHER, 2]
