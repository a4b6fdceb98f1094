"""What a broker of RocketMQ tells of itself, in its own words."""

import pytest

from ropeway.client.admin_broker_facts import now_ms, stored_bytes

RUNTIME = {
    "bootTimestamp": "1795775442520",
    "runtime": "[ 1 days, 2 hours, 3 minutes, 57 seconds ]",
    "commitLogMinOffset": "1000",
    "commitLogMaxOffset": "6151",
}
"""As RocketMQ 5.5.0 says it."""


def test_a_broker_tells_its_clock_and_its_size():
    ran_s = ((24 + 2) * 60 + 3) * 60 + 57
    assert now_ms(RUNTIME) == 1795775442520 + ran_s * 1000
    assert stored_bytes(RUNTIME) == 5151


@pytest.mark.parametrize("name", RUNTIME)
def test_one_that_does_not_is_not_guessed_at(name):
    facts = {key: value for key, value in RUNTIME.items() if key != name}
    found = (now_ms(facts), stored_bytes(facts))
    assert found.count(None) == 1
