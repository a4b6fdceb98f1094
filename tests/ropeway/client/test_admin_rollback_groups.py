"""Groups of topics that go back go on exactly where they were."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client import (
    Producer,
    PushConsumer,
    admin_groups,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from tests.ropeway.client.scenario import CONSUMER, PRODUCER, scenario
from tests.ropeway.client.test_admin_cut_over import both
from tests.ropeway.client.test_admin_finish import moved
from tests.ropeway.client.test_admin_mirrors import send
from tests.ropeway.client.test_admin_rollback import SETTLE_S, copied

if TYPE_CHECKING:
    from ropeway.client import ReceivedMessage


@scenario
async def test_groups_go_on_at_the_copy_of_their_next_message(name_server, topic):
    async with both(name_server, topic) as (source, ours, early, producer):
        await source.create_topic(topic, 2)
        await send(early, topic, 6)
        await moved(source, ours, topic)
        await send(producer, topic, 100)
        # What came late to the source moves all copies there.
        await admin_topics.update(source, topic, perm=6)
        while not (await source.route(topic)).write_queues:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        async with Producer(name_server, f"q-{topic}", config=PRODUCER) as late:
            await send(late, topic, 6)
        groups = {f"g{at}-{topic}": at for at in (0, 2, 3, 4, 30, 53)}
        (first, _) = pairs = await Mirror(source, ours).pairs(topic)
        for group, at in groups.items():
            for admin in (source, ours):
                await admin_groups.create(admin, group, {})
            await admin_offsets.place(ours, group, {first.target: at})
        job = Rollback(source, ours, Mirror(source, ours), 0)
        done = await job.roll_back([topic], [*groups], lambda _: None)
        # The late ones were brought here first, and are among the copies.
        assert done.sent == {topic: 106}
        assert {(one.group, one.here) for one in done.placed} == {*groups.items()}
        for one in done.placed:
            at = await admin_offsets.committed(source, one.group, one.pair.source)
            assert at == one.at_source
            # Up to the cut-over offsets are equal; then come the late ones.
            assert at == (one.here if one.here <= 3 else one.here + 3)
        for pair in pairs:
            assert await copied(source, pair) == [*range(3, 56)]


@scenario
async def test_what_was_read_at_the_source_while_it_went_back_is_not_read_here_too(
    name_server, topic
):
    """A client that looks at routes rarely reads the copies at the source first."""
    group = f"g-{topic}"
    received: list[tuple[int, int]] = []

    async def handle(message: ReceivedMessage) -> None:
        received.append((message.queue.queue_id, message.queue_offset))

    async with both(name_server, topic) as (source, ours, early, producer):
        await source.create_topic(topic, 2)
        await send(early, topic, 6)
        for admin in (source, ours):
            await admin_groups.create(admin, group, {})
        await moved(source, ours, topic)
        pairs = await Mirror(source, ours).pairs(topic)
        for pair in pairs:
            for admin, queue in ((source, pair.source), (ours, pair.target)):
                await admin_offsets.commit(admin, group, queue, 1)
        await send(producer, topic, 20)
        late = PushConsumer(name_server, group, config=CONSUMER)
        late.subscribe(topic, "*", handle)
        async with late:
            job = Rollback(source, ours, Mirror(source, ours), SETTLE_S)
            done = await job.roll_back([topic], [group], lambda _: None)
        for pair in pairs:
            (placed,) = (one for one in done.placed if one.pair == pair)
            assert placed.here == (await ours.span(pair.target)).end
            assert placed.at_source == (await source.span(pair.source)).end
        assert sorted(received) == [(q, at) for q in (0, 1) for at in range(1, 13)]
