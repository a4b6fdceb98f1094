"""Why a message has not come, one scenario for each reason."""

import time
import uuid

import pytest

from ropeway.client import (
    RETRY,
    Admin,
    Message,
    Producer,
    admin_explain,
)
from ropeway.client.errors import AdminError
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.commands.send import SendMessageV2
from tests.ropeway.client.explained import codes, sent
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    consumer,
    eventually,
    scenario,
)


@scenario
async def test_what_is_nowhere_says_so(ropeway_gateway, topic, group):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        assert await codes(admin, "A" * 32, group, topic) == ["no-topic"]
        await sent(ropeway_gateway.name_server, Message(topic, b"x"))
        assert await codes(admin, "A" * 32, group, topic) == ["not-stored"]
        with pytest.raises(AdminError, match="name its topic"):
            await admin_explain.explain(admin, "nonsense", group)


@scenario
async def test_what_waits_for_its_time_says_until_when(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    async with Admin(name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 1)
        level = await sent(name_server, Message(topic, b"x", delay_level=18))
        timed = await sent(name_server, Message(topic, b"x", delay_ms=3_600_000))
        for one in (level, timed):
            found = await codes(admin, one.msg_id, group, topic)
            assert found == ["waiting-for-its-time"]
        async with Producer(name_server, "p", config=PRODUCER) as sender:
            assert timed.recall_handle
            await sender.recall(topic, timed.recall_handle)
        assert await codes(admin, timed.msg_id, group, topic) == ["recalled"]


@scenario
async def test_a_half_message_names_its_producer_group(ropeway_gateway, topic, group):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 1)
        key = uuid.uuid4().hex.upper()
        pairs = {
            names.TRANSACTION_PREPARED: "true",
            names.PRODUCER_GROUP: "payers",
            names.UNIQ_KEY: key,
        }
        half = SendMessageV2(
            producer_group="payers",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=1,
            queue_id=0,
            sys_flag=4,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=names.dump(pairs),
            reconsume_times=0,
        )
        await admin.ask(ropeway_gateway.address, half, b"x")
        found = await admin_explain.explain(admin, key, group, topic)
        (finding,) = found.findings
        assert finding.code == "half-message"
        assert "producer group payers" in finding.text
        assert found.message is None


@scenario
async def test_what_could_not_be_handled_is_in_retry_or_dead(
    ropeway_gateway, topic, group
):
    name_server = ropeway_gateway.name_server
    one = await sent(name_server, Message(topic, b"x"))
    for times, code in ((3, "in-retry"), (0, "dead-letter")):
        name = f"{group}-{code}"

        async def handler(_: object) -> object:
            return RETRY

        reader = consumer(name_server, name, max_reconsume_times=times)
        reader.subscribe(topic, "*", handler)
        async with Admin(name_server, config=PATIENT) as admin, reader:

            async def look(admin=admin, name=name) -> list[str]:
                return await codes(admin, one.msg_id, name, topic)

            found = await eventually(look, lambda found, code=code: found[0] == code)
            assert found[-1] in ("passed", "with-a-consumer", "behind", "never-read")
