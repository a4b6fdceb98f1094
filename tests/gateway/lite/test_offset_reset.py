"""Where a subscription begins that does not begin where its group is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.lite import OffsetOption
from tests.gateway.lite.rig import rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (None, ["2"]),
        (OffsetOption("POLICY", 0), ["2"]),
        (OffsetOption("POLICY", 1), ["0", "1", "2"]),
        (OffsetOption("POLICY", 2), []),
        (OffsetOption("OFFSET", 1), ["1", "2"]),
        (OffsetOption("OFFSET", 1 << 60), []),
        (OffsetOption("TAIL_N", 1), ["1", "2"]),
        (OffsetOption("TAIL_N", 9), ["0", "1", "2"]),
        (OffsetOption("TIMESTAMP", 1), ["0", "1", "2"]),
        (OffsetOption("TIMESTAMP", 1 << 50), []),
    ],
)
async def test_a_group_goes_where_it_is_sent(
    tmp_path: Path, option: OffsetOption | None, expected: list[str]
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0", "1", "2")
        found = await rig.pop(max_msg_num=2)
        assert [await rig.ack(found, at) for at in (0, 1)] == [0, 0]
        # Out, and forgotten where the group is moved.
        assert (await rig.pop()).bodies == ["2"]
        assert await rig.sync(lite.PARTIAL_REMOVE, "a") == 0
        assert await rig.sync(lite.PARTIAL_ADD, "a", option=option) == 0
        await rig.pass_time(60_000)
        assert (await rig.pop()).bodies == expected


@looped
async def test_a_new_group_begins_so_many_messages_before_the_end(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.send("a", "0", "1", "2")
        option = OffsetOption("TAIL_N", 2)
        assert await rig.sync(lite.PARTIAL_ADD, "a", option=option) == 0
        assert (await rig.pop()).bodies == ["1", "2"]


@looped
async def test_a_lite_topic_without_messages_has_nowhere_else_to_begin(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        option = OffsetOption("POLICY", 2)
        assert await rig.sync(lite.PARTIAL_ADD, "a", option=option) == 0
        await rig.send("a", "0")
        assert (await rig.pop()).bodies == ["0"]
