"""Unique keys for messages whose producer gave none."""

import re

from ropeway.gateway.node.unique_keys import UniqueKeys


def test_keys_are_32_digits_and_never_the_same():
    one, two = UniqueKeys(), UniqueKeys()
    keys = [source.make() for _ in range(1000) for source in (one, two)]
    assert len(set(keys)) == 2000
    assert all(re.fullmatch("[0-9A-F]{32}", key) for key in keys)
