"""Properties that brokers write: a producer that writes them itself gains nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import CommitBatch, Stage, StageReply
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import looped, running
from tests.requests import sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Remoting

OTHERS_RECEIPT = {"POP_CK": "0 1 60000 0 0 broker-0 0 5", "K": "v", "UNIQ_KEY": "u"}
FROM_BANK = {"RETRY_TOPIC": "bank", "DLQ_ORIGIN_TOPIC": "bank", "UNIQ_KEY": "u"}


async def first(client: Remoting, topic: str) -> message.Message:
    answer = await client.ask(waiting(topic, max_msg_nums=1))
    assert answer.code == 0, answer
    return answer.messages()[0]


async def send(client: Remoting, how: str, pairs: dict[str, str]) -> str:
    """Send a message; tells in which topic it is stored."""
    text = properties.dump(pairs)
    batch = encode_batch([BatchEntry(0, b"x", text)])
    if how == "batch":
        answer = await client.ask(sending("orders", batch=True), batch)
    elif how == "staged":
        await client.ask(sending("made", default_topic_queue_nums=1), b"x")
        stage = Stage(producer_id="p", topic="made", queue_id=0)
        staged = (await client.ask(stage, batch)).read(StageReply)
        body = json.dumps({"staged": {"broker-0": [staged.offset]}}).encode()
        answer = await client.ask(CommitBatch(producer_id="p", batch_id=0), body)
        assert answer.code == 0, answer
        return "made"
    elif how == "half":
        half = sending("orders", sys_flag=4, properties=text)
        answer = await client.ask(half, b"x")
    else:
        answer = await client.ask(sending("orders", v2=how == "v2", pairs=pairs), b"x")
    assert answer.code == 0, answer
    return "orders"


@looped
@pytest.mark.parametrize("how", ["v1", "v2", "batch", "staged", "half"])
async def test_nobody_acknowledges_by_a_receipt_that_a_producer_made_up(
    tmp_path: Path, how: str
):
    """Whoever pops takes the receipt that a message has for its own."""
    async with running(tmp_path) as (app, client):
        topic = app.node.topics.get(await send(client, how, OTHERS_RECEIPT))
        if how == "half":
            topic = app.node.topics.get("RMQ_SYS_TRANS_HALF_TOPIC")
        partition = topic.partitions[0]
        chunk = await partition.read(partition.next_offset - 1, 1, 1)
        found = properties.parse(message.decode(chunk.data[0]).properties)
        assert "POP_CK" not in found
        assert found["K"] == "v"


@looped
@pytest.mark.parametrize(("level", "kept_in"), [(1, "%RETRY%g"), (-1, "%DLQ%g")])
async def test_a_producer_does_not_say_which_topic_its_message_comes_from(
    tmp_path: Path, level: int, kept_in: str
):
    """Consumers believe a retry's property, and who replays dead letters, too."""
    async with running(tmp_path, delay_levels="1s 2s") as (_, client):
        await send(client, "v2", FROM_BANK)
        one = await first(client, "orders")
        for _ in range(2):
            back = ConsumerSendMsgBack(
                offset=one.message_id,
                group="g",
                delay_level=level,
                origin_topic=one.topic,
                max_reconsume_times=16,
            )
            assert (await client.ask(back)).code == 0
            one = await first(client, kept_in)
            assert properties.parse(one.properties)["RETRY_TOPIC"] == "orders"


@looped
async def test_a_retry_takes_the_right_to_the_topic_that_it_is_said_to_be_of(
    tmp_path: Path,
):
    rules = allow("Topic:orders"), allow("Group:g"), allow("Topic:made", "Sub")
    async with guarded(tmp_path, *rules) as (_, client):
        for topic in ("orders", "bank"):
            await ask(client, ROOT, sending(topic), b"x")
        for origin, code in (
            ("orders", 0),
            ("made", 0),
            ("bank", ResponseCode.NO_PERMISSION),
            ("%RETRY%others", ResponseCode.NO_PERMISSION),
        ):
            retry = sending("%RETRY%g", pairs={"RETRY_TOPIC": origin})
            assert (await ask(client, ALICE, retry, b"x")).code == code
        stage = Stage(producer_id="p", topic="%RETRY%g", queue_id=0)
        staged = encode_batch([BatchEntry(0, b"x", properties.dump(FROM_BANK))])
        refused = await ask(client, ALICE, stage, staged)
        assert refused.code == ResponseCode.NO_PERMISSION
