"""What pops keep of groups, topics and queues that go, or that are moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands.group_admin import ResetOffset
from tests.gateway.pop.rig import GROUP, TOPIC, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
@pytest.mark.parametrize(
    ("gone", "released"),
    [
        ({"group": "g"}, {("g", "t"), ("g", "u")}),
        ({"topic": "t"}, {("g", "t"), ("h", "t")}),
        ({"group": "g", "topic": "t"}, {("g", "t")}),
    ],
)
async def test_pops_of_what_is_gone_wait_no_longer_and_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone, released
):
    async with rigged(tmp_path) as rig:
        kinds = []
        with monkeypatch.context() as patch:
            patch.setattr(rig.pop.polling, "release_all", kinds.append)
            rig.pop.forget(**gone)
        (of,) = kinds
        waiting = {(group, topic) for group in "gh" for topic in "tu"}
        assert {key for key in waiting if of(key)} == released


@looped
async def test_who_loses_a_queue_says_first_how_far_its_groups_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        found = await rig.consumer.take(2)
        assert await rig.consumer.ack(found, 0) == 0
        kinds = []
        with monkeypatch.context() as patch:
            patch.setattr(rig.pop.polling, "release_all", kinds.append)
            rig.pop.leave(TOPIC, 0)
        assert (rig.committed(), rig.in_hand()) == (1, (0, 0))
        (of,) = kinds
        assert (of(("any", TOPIC)), of((TOPIC, "other"))) == (True, False)


@looped
async def test_how_far_a_group_is_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        said = []
        commit = rig.app.node.offsets.commit

        def noted(*given) -> None:
            said.append(given)
            commit(*given)

        monkeypatch.setattr(rig.app.node.offsets, "commit", noted)
        for _ in range(2):
            await rig.consumer.take(1)
            rig.pass_time(0)
        assert said.count((GROUP, TOPIC, 0, 0)) <= 1


@looped
async def test_a_group_that_was_moved_has_nothing_in_the_ledger(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        await rig.consumer.take(2)
        await rig.to_ledger()
        assert rig.in_hand() == (0, 2)
        reset = ResetOffset(group=GROUP, topic=TOPIC, timestamp=0, is_force=True)
        assert (await rig.consumer.client.ask(reset)).code == 0
        assert (await rig.consumer.take(1)).offsets == [0]
        assert rig.in_hand() == (1, 0)
        await until(rig.pop.is_idle)
        await rig.until_empty()
