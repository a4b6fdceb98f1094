"""Texts that clients choose are in no cache where they are long."""

from __future__ import annotations

import pytest

from ropeway.gateway.node import native
from ropeway.gateway.processors import needs
from ropeway.gateway.wire import properties, receipt

LONG = properties.REMEMBERED_CHARACTERS + 1
CACHES = {
    "a tag": (properties.tag_hash, properties._hash),
    "a group": (
        lambda text: receipt.retry_topic(text, "t", receipt.RETRY_V2),
        receipt._retry_topic,
    ),
    "a topic of a receipt": (
        lambda text: receipt.retry_topic("g", text, receipt.RETRY_V1),
        receipt._retry_topic,
    ),
    "a topic that is asked for": (
        lambda text: needs.topic_need(text, (needs.PUB,)),
        needs._topic_need,
    ),
    "an address that a native client says": (native._born_host, native._packed),
}


@pytest.mark.parametrize("name", CACHES)
def test_short_texts_are_remembered_and_long_ones_are_not(name: str) -> None:
    ask, cache = CACHES[name]
    cache.cache_clear()
    assert ask("short") == ask("short")
    assert cache.cache_info().currsize == 1
    for number in range(9):
        text = f"{number}" * LONG
        assert ask(text) == ask(text)
    assert cache.cache_info().currsize == 1
