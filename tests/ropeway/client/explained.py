"""Messages that are sent, and what is found to explain them."""

from ropeway.client import Admin, Message, Producer, SendResult, admin_explain
from tests.ropeway.client.scenario import PRODUCER


async def sent(name_server: str, message: Message) -> SendResult:
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        return await sender.send(message)


async def codes(admin: Admin, msg_id: str, group: str, topic: str) -> list[str]:
    found = await admin_explain.explain(admin, msg_id, group, topic)
    assert all(one.text and one.advice for one in found.findings)
    return [one.code for one in found.findings]
