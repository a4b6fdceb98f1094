"""Messages that come again: retry topics and dead letters."""

import pytest

from ropeway.client import RETRY
from tests.ropeway.client.scenario import (
    Inbox,
    consumer,
    numbered,
    scenario,
    send_all,
)


@pytest.mark.slow
@scenario
async def test_failed_messages_come_again_until_they_are_dead_letters(
    name_server, topic, group
):
    """One test for all of it, since the first delay is ten seconds."""
    await send_all(name_server, topic, [b"good", b"raises", b"fails", b"hopeless"])
    inbox, dead = Inbox(), Inbox()

    async def handler(message):
        await inbox(message)
        if message.body == b"hopeless":
            return RETRY
        if message.body != b"good" and message.reconsume_times == 0:
            if message.body == b"raises":
                raise ValueError(message.body)
            return RETRY
        return None

    reader = consumer(name_server, group, max_reconsume_times=1)
    reader.subscribe(topic, "*", handler)
    undertaker = consumer(name_server, f"{group}-dead")
    undertaker.subscribe(f"%DLQ%{group}", "*", dead)
    async with reader, undertaker:
        await dead.wait_for(b"hopeless")
    assert sorted(inbox.bodies) == sorted(
        [b"good", *[b"raises"] * 2, *[b"fails"] * 2, *[b"hopeless"] * 2]
    )
    first = {m.body: m for m in inbox.messages if m.reconsume_times == 0}
    again = {m.body: m for m in inbox.messages if m.reconsume_times == 1}
    assert len(again) == 3
    for body, message in again.items():
        assert message.topic == topic
        assert message.queue.topic == f"%RETRY%{group}"
        assert message.msg_id == first[body].msg_id
        assert message.store_ms - first[body].store_ms >= 9_500
    (letter,) = dead.messages
    assert letter.topic == f"%DLQ%{group}"
    assert letter.msg_id == first[b"hopeless"].msg_id


@scenario
async def test_without_retries_a_failed_message_is_a_dead_letter_at_once(
    name_server, topic, group
):
    await send_all(name_server, topic, numbered(2))
    inbox, dead = Inbox(), Inbox()

    async def handler(message):
        await inbox(message)
        return RETRY

    reader = consumer(name_server, group, max_reconsume_times=0)
    reader.subscribe(topic, "*", handler)
    undertaker = consumer(name_server, f"{group}-dead")
    undertaker.subscribe(f"%DLQ%{group}", "*", dead)
    async with reader, undertaker:
        await dead.wait_for(*numbered(2))
    assert len(inbox.bodies) == 2
