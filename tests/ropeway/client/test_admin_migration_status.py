"""A topic of a source stands somewhere, and what is missing is counted."""

from __future__ import annotations

from ropeway.client import Admin, Producer
from ropeway.client.admin_migration_status import standings
from ropeway.client.admin_mirrors import Mirror
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_mirrors import copy_all, send, target

__all__ = ["target"]


@scenario
async def test_what_is_missing_is_counted_by_topic(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(where, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        await send(producer, topic, 4)
        mirror = Mirror(source, here)
        (one,) = await standings(source, here, mirror, [topic], 0.1)
        assert (one.stage, one.missing) == ("at_source", None)
        pairs = await mirror.prepare(topic)
        (one,) = await standings(source, here, mirror, [topic], 0.1)
        assert (one.stage, one.missing, one.left_s) == ("mirrored", 4, None)
        await copy_all(mirror, pairs)
        (one,) = await standings(source, here, mirror, [topic], 0.1)
        assert (one.missing, one.behind_s, one.left_s) == (0, 0.0, 0.0)
