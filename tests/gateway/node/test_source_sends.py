"""Holds of what is sent on to a migration's source."""

from __future__ import annotations

from ropeway.client.config import ClientConfig
from ropeway.client.connections import Connections
from ropeway.gateway.node.source_sends import SourceSends
from tests.remoting import looped


class Nowhere:
    async def find(self, *_: object) -> None:
        return None


@looped
async def test_a_hold_is_of_one_topic_and_one_name_until_it_is_released():
    sends = SourceSends(Nowhere(), Connections(ClientConfig(), lambda _: None))
    await sends.hold("orders", "one")
    assert (sends.is_held("orders"), sends.is_held("others")) == (True, False)
    assert (sends.is_held("orders", "one"), sends.is_held("orders", "two")) == (
        True,
        False,
    )
    sends.release("orders")
    await sends.released("orders")
    assert not sends.is_held("orders", "one")
