"""What is forgotten of queues that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.names import ORDER_SIGN
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_nothing_is_known_of_a_queues_readers_after_it_went(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        node = app.node
        for queue_id in (0, 1):
            node.offsets.commit("readers", "orders", queue_id, 5)
            node.offsets.commit("readers", ORDER_SIGN + "orders", queue_id, 9)
            node.resets.put("others", "orders", {queue_id: 3})
            node.pop.in_flight.queue("readers", "orders", queue_id)
            node.pop.book.block(("readers", "orders", queue_id), 0, 1 << 60)
        node.topics.moving.clear_queue("orders", 1)
        for group in ("readers", "others"):
            assert list(node.offsets.queues(group, "orders")) == [0]
        assert list(node.offsets.queues("readers", ORDER_SIGN + "orders")) == [0]
        assert node.resets.get("others", "orders", 1) is None
        assert node.resets.get("others", "orders", 0) is not None
        assert node.pop.in_flight.get(("readers", "orders", 1)) is None
        assert node.pop.in_flight.get(("readers", "orders", 0)) is not None
        assert node.pop.book.get(("readers", "orders", 1)) is None
        assert node.pop.book.get(("readers", "orders", 0)) is not None
