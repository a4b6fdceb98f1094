"""Topics are trimmed by offset and by time."""

from __future__ import annotations

from ropeway.client import Admin, Message, Producer, admin_trims
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER, scenario


@scenario
async def test_a_topic_is_trimmed(ropeway_gateway, topic):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as admin,
        Producer(where, "p", config=PATIENT_PRODUCER) as producer,
    ):
        sent = [await producer.send(Message(topic, b"x")) for _ in range(3)]
        queue_id = sent[0].queue.queue_id
        planned = await admin_trims.trim(
            admin, topic, queue_id=queue_id, offset=1, dry_run=True
        )
        (done,) = await admin_trims.trim(admin, topic, queue_id=queue_id, offset=1)
        assert planned == [done]
        assert (done.queue, done.before, done.after) == (sent[0].queue, 0, 1)
        found = await admin_trims.trim(admin, topic)
        spans = {one.queue: one for one in await admin.describe_topic(topic)}
        assert {one.queue: one.after for one in found} == {
            queue: span.end for queue, span in spans.items()
        }
        assert all(span.begin == span.end for span in spans.values())
