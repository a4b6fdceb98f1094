"""Users and rules that nodes share by ZooKeeper: what one changes, all go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.acl.administration import Rules, User
from ropeway.gateway.wire.codes import ResponseCode
from tests.guarded import ALICE, NOBODY, PASSWORD, acl_of, allow, ask
from tests.remoting import looped, two_running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DENIED = ResponseCode.NO_PERMISSION
SUBJECT = f"User:{ALICE}"


@looped
async def test_what_one_node_changes_all_nodes_go_by(tmp_path: Path, chroot: str):
    async with two_running(tmp_path, routes=chroot, acl=acl_of(tmp_path)) as (
        (near, _),
        (far, client),
    ):
        users, seen = (one.node.guard.administration for one in (near, far))

        async def sent_by(who: str, password: str = PASSWORD) -> int:
            answer = await ask(client, who, sending("orders"), b"x", password=password)
            return answer.code

        for name in (ALICE, NOBODY):
            await users.create_user(User(name, PASSWORD))
        await users.add_rules(Rules(SUBJECT, (allow("Topic:orders", "Pub"),)))
        await until(
            lambda: SUBJECT in seen.rules() and {ALICE, NOBODY} <= seen.users().keys()
        )
        assert (await sent_by(ALICE), await sent_by(NOBODY)) == (0, DENIED)

        await users.update_user(ALICE, password="another-one")
        await until(lambda: seen.users()[ALICE].password == "another-one")
        assert await sent_by(ALICE) == DENIED
        assert await sent_by(ALICE, "another-one") == 0

        await users.delete_user(ALICE)
        await until(lambda: ALICE not in seen.users())
        assert await sent_by(ALICE, "another-one") == DENIED
