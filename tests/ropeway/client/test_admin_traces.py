"""Traces of messages, as an administrator's client reads them."""

from ropeway.client import Admin, Message, Producer, admin_traces
from tests.ropeway.client.scenario import (
    PATIENT,
    PATIENT_PRODUCER,
    eventually,
    scenario,
)


@scenario
async def test_steps_come_in_the_order_of_time_and_are_of_one_message(
    ropeway_gateway, topic
):
    key = f"{topic}-1"
    steps = (
        ["SubAfter", "R", key, "7", "true", "k", "0", "20", "readers"],
        ["SubBefore", "10", "region", "readers", "R", key, "2", "k"],
        ["SubBefore", "15", "region", "readers", "S", "another", "0", "k"],
    )
    body = "".join("\x01".join(fields) + "\x02" for fields in steps).encode()
    async with (
        Producer(ropeway_gateway.name_server, "p", config=PATIENT_PRODUCER) as sender,
        Admin(ropeway_gateway.name_server, config=PATIENT) as admin,
    ):
        # Where clients write traces can be any topic.
        await sender.send(Message(topic, body, keys=(key,)))
        found = await eventually(
            lambda: admin_traces.trace(admin, key, trace_topic=topic), bool
        )
        assert [(one.kind, one.time_ms) for one in found] == [
            ("SubBefore", 10),
            ("SubAfter", 20),
        ]
        assert await admin_traces.trace(admin, "nosuch", trace_topic=topic) == []
