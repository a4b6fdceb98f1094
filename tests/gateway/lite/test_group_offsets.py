"""Progress in lite topics: kept with all other, and not shown with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.commands.admin import DeleteGroup
from tests.gateway.lite.rig import GROUP, PARENT, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

QUEUE = f"%LMQ%${PARENT}$a"


@looped
async def test_progress_is_apart_from_that_in_topics_and_goes_with_its_group(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        found = await rig.pop()
        assert await rig.ack(found) == 0
        ((group, queue, queue_id),) = rig.lite._progress.places(QUEUE)
        assert (group, queue) == (GROUP, QUEUE)
        assert rig.lite._progress.get((GROUP, QUEUE, queue_id)) == 1
        assert QUEUE not in rig.app.node.offsets.topics(GROUP)
        deleted = DeleteGroup(group_name=GROUP, clean_offset=True)
        assert (await rig.client.ask(deleted)).code == 0
        assert not rig.lite._progress.places(QUEUE)
        assert not list(rig.lite.subscribers)


@looped
async def test_progress_ahead_of_a_log_that_lost_its_end_is_taken_back(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.send("a", "0")
        (queue_id,) = rig.lite._follower.parents[PARENT].catalogue.get("a").ends
        rig.lite._progress.commit((GROUP, QUEUE, queue_id), 7)
    async with rigged(tmp_path) as rig:
        assert rig.lite._progress.get((GROUP, QUEUE, queue_id)) == 1
