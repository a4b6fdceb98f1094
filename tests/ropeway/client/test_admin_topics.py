"""Topics broker by broker."""

import pytest

from ropeway.client import Admin, ResponseError, admin_topics
from ropeway.client.errors import AdminError, TopicNotFoundError
from tests.remoting import looped, two_running, until
from tests.requests import pulling, sending
from tests.ropeway.client.scenario import PATIENT, scenario, send_all


@scenario
async def test_what_queues_hold_and_how_much_is_sent_are_told(ropeway_gateway, topic):
    await send_all(ropeway_gateway.name_server, topic, [b"x"] * 8)
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        spans = await admin_topics.stats(admin, topic)
        assert sum(span.end - span.begin for span in spans) == 8
        assert all(bool(span.newest_ms) == (span.end > 0) for span in spans)
        rate = await admin_topics.put_rate(admin, topic)
        assert (rate.last_hour, rate.last_day) == (8, 8)
        await admin.create_topic(f"{topic}-empty", 1)
        nothing = await admin_topics.put_rate(admin, f"{topic}-empty")
        assert nothing == admin_topics.Rate(0, 0, 0)


def test_a_size_is_estimated_from_what_was_sent_in_the_last_day():
    assert admin_topics.approximate_bytes(4, 10, 1_005) == 402
    assert admin_topics.approximate_bytes(0, 0, 0) == 0
    assert admin_topics.approximate_bytes(4, 0, 0) is None
    # A broker that does not count bytes.
    assert admin_topics.approximate_bytes(4, 10, 0) is None


@scenario
async def test_a_topic_grows_and_never_shrinks(ropeway_gateway, topic):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        await admin_topics.create_on(admin, topic, "broker-0", 2)
        before = await admin_topics.places(admin, topic)
        with pytest.raises(AdminError, match="on broker broker-0 already"):
            await admin_topics.create_on(admin, topic, "broker-0", 2)
        grown = await admin_topics.expand(admin, topic, 5)
        assert grown == {"broker-0": (2, 5)}
        after = await admin_topics.places(admin, topic)
        assert len(after["broker-0"]) == 5
        assert after["broker-0"][:2] == before["broker-0"]
        for queues in (4, 5):
            with pytest.raises(AdminError, match=f"more than that, not {queues}"):
                await admin_topics.expand(admin, topic, queues, "broker-0")
        with pytest.raises(AdminError, match="not on broker b9; it is on broker-0"):
            await admin_topics.expand(admin, topic, 9, "b9")
        config = (await admin_topics.configs(admin, topic))["broker-0"]
        assert (config.read_queue_nums, config.write_queue_nums) == (5, 5)


@scenario
async def test_a_topic_that_is_not_there_is_an_error(ropeway_gateway, topic):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(TopicNotFoundError):
            await admin_topics.stats(admin, topic)
        with pytest.raises(ResponseError, match="No topic in the route store"):
            await admin_topics.places(admin, topic)


@looped
async def test_one_brokers_queues_are_deleted_and_others_keep_theirs(tmp_path):
    async with two_running(tmp_path) as ((one, first), (two, second)):
        for client in (first, second):
            assert (await client.ask(sending("orders"), b"kept")).code == 0
        for app in (one, two):
            await until(lambda app=app: len(app.node.routes.topics["orders"].route) > 1)
        name_server = f"127.0.0.1:{one.server.listeners[0].port}"
        async with Admin(name_server, config=PATIENT) as admin:
            queues = len((await admin_topics.places(admin, "orders"))["broker-1"])
            gone = await admin_topics.delete_from(admin, "orders", "broker-1")
            assert gone == queues
            assert list(await admin_topics.places(admin, "orders")) == ["broker-0"]
            with pytest.raises(AdminError, match="on broker broker-0 alone"):
                await admin_topics.delete_from(admin, "orders", "broker-0")
        kept = await first.ask(pulling("orders"))
        assert [message.body for message in kept.messages()] == [b"kept"]


@looped
async def test_an_update_reaches_every_broker_and_keeps_what_differs(tmp_path):
    async with two_running(tmp_path) as ((one, first), (two, second)):
        for client in (first, second):
            assert (await client.ask(sending("orders"), b"kept")).code == 0
        for app in (one, two):
            await until(lambda app=app: len(app.node.routes.topics["orders"].route) > 1)
        name_server = f"127.0.0.1:{one.server.listeners[0].port}"
        async with Admin(name_server, config=PATIENT) as admin:

            async def shown() -> dict[str, tuple[int, int, int]]:
                return {
                    broker: (found.read_queue_nums, found.write_queue_nums, found.perm)
                    for broker, found in (
                        await admin_topics.configs(admin, "orders")
                    ).items()
                }

            before = await admin_topics.queues_on(admin, "orders", "broker-0")
            await admin_topics.expand(admin, "orders", before + 2, "broker-1")
            await admin_topics.update(admin, "orders", perm=4)
            assert await shown() == {
                "broker-0": (before, before, 4),
                "broker-1": (before + 2, before + 2, 4),
            }
            await admin_topics.update(admin, "orders", queues=before + 3)
            assert set((await shown()).values()) == {(before + 3, before + 3, 4)}
            assert {
                broker: len(numbers)
                for broker, numbers in (
                    await admin_topics.places(admin, "orders")
                ).items()
            } == {"broker-0": before + 3, "broker-1": before + 3}
