"""How a cluster differs from what a file declares; all kinds are in `test_apply.py`."""

import asyncio

from ropeway.client import Admin
from ropeway.gateway.cli.declared import read
from ropeway.gateway.cli.differences import differences


def test_what_is_left_out_is_left_alone(ropeway_gateway, ropeway_topic):
    asyncio.run(_mended(ropeway_gateway, ropeway_topic))


async def _mended(ropeway_gateway, ropeway_topic) -> None:
    group = f"g-{ropeway_topic}"
    text = f"topics: {{{ropeway_topic}: }}\ngroups: {{{group}: {{retries: 3}}}}"
    declared = read(text.encode(), "f")
    async with Admin(ropeway_gateway.name_server) as admin:
        found = await differences(admin, declared, prune=False)
        assert [(one.action, one.kind) for one in found] == [
            ("create", "topic"),
            ("create", "group"),
        ]
        for one in found:
            await one.act(admin)
        assert await differences(admin, declared, prune=False) == []
        bare = read(f"groups: {{{group}: }}".encode(), "f")
        assert await differences(admin, bare, prune=False) == []
        # Nothing is pruned of a section that is not there.
        pruned = await differences(admin, bare, prune=True)
        assert {one.kind for one in pruned} <= {"group"}
        assert group not in {one.name for one in pruned}
