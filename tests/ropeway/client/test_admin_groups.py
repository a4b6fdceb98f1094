"""How groups are set up, and who is in them."""

import pytest

from ropeway.client import Admin, admin_groups
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import (
    PATIENT,
    Inbox,
    consumer,
    eventually,
    scenario,
    send_all,
)


@scenario
async def test_a_group_is_made_once_and_changed_in_part(ropeway_gateway, group):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(AdminError, match=f"group {group}"):
            await admin_groups.update(admin, group, {"retry_max_times": 2})
        await admin_groups.create(admin, group, {"retry_max_times": 3})
        with pytest.raises(AdminError, match=f"group {group} exists already"):
            await admin_groups.create(admin, group, {})
        await admin_groups.update(admin, group, {"consume_enable": False})
        found = await admin_groups.config(admin, group)
        assert found is not None
        assert (found.retry_max_times, found.consume_enable) == (3, False)


@scenario
async def test_members_are_told_with_what_they_want(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    await send_all(name_server, topic, [b"x"])
    async with Admin(name_server, config=PATIENT) as admin:
        assert (await admin_groups.membership(admin, group)).members == []
        inbox = Inbox()
        reader = consumer(name_server, group)
        reader.subscribe(topic, "a || b", inbox)
        async with reader:
            found = await eventually(
                lambda: admin_groups.membership(admin, group), lambda one: one.members
            )
            (member,) = found.members
            assert member.client_id == reader.client_id
            assert found.subscriptions[topic].sub_string == "a || b"
            assert found.is_push
            assert not found.is_broadcast
            await eventually(
                lambda: admin_groups.queues_of(admin, group, member.client_id),
                lambda queues: topic in {one.topic for one in queues or ()},
            )
            assert group in await admin_groups.groups_of(admin, topic)


@scenario
async def test_asking_for_a_group_makes_none(name_server, group):
    """RocketMQ's brokers make one that is asked for by its name."""
    async with Admin(name_server, config=PATIENT) as admin:
        assert await admin_groups.config(admin, group) is None
        assert group not in await admin.groups()
        await admin_groups.create(admin, group, {"retry_max_times": 3})
        found = await admin_groups.known(admin, group)
        assert found.retry_max_times == 3
