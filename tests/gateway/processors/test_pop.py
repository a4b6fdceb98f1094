"""Popping over the wire: what is refused, and what an answer is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.node.quotas import Key, Quota
from ropeway.gateway.processors import pop
from ropeway.gateway.wire import properties, receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.frame import ROCKETMQ
from ropeway.gateway.wire.header import to_fields
from ropeway.routing.api import PERM_WRITE, Group, Topic
from ropeway.storage.api import MAX_LOOKS
from tests.gateway.pop.rig import GROUP, TOPIC, Consumer, popped, rigged
from tests.remoting import connect, looped, running, two_running, until
from tests.requests import batch_of, sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "absent"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queue_id": 2}, ResponseCode.INVALID_PARAMETER),
        ({"max_msg_nums": 33}, ResponseCode.INVALID_PARAMETER),
        ({"max_msg_nums": 0}, ResponseCode.INVALID_PARAMETER),
        ({"max_msg_nums": -1}, ResponseCode.INVALID_PARAMETER),
        ({"invisible_time": 0}, ResponseCode.INVALID_PARAMETER),
        ({"invisible_time": -5}, ResponseCode.INVALID_PARAMETER),
        ({"consumer_group": "bad group"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"consumer_group": "shut"}, ResponseCode.NO_PERMISSION),
        ({"topic": "unreadable"}, ResponseCode.NO_PERMISSION),
        ({"exp_type": "RUBY", "exp": "x"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    ],
)
async def test_what_cannot_be_popped_is_refused_by_its_code(
    tmp_path: Path, changes, code
):
    async with rigged(tmp_path, queues=2) as rig:
        await rig.app.node.groups.put(Group(name="shut", consume_enable=False))
        await rig.app.node.topics.put(
            Topic(
                name="unreadable",
                read_queue_nums=1,
                write_queue_nums=1,
                perm=PERM_WRITE,
            )
        )
        await rig.consumer.send(1)
        refused = await rig.consumer.client.ask(rig.consumer.header(**changes))
        assert refused.code == code
        assert refused.remark
        assert (await rig.consumer.take(1)).offsets == [0]


@looped
async def test_a_group_is_made_by_its_first_pop_where_that_is_allowed(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        assert rig.app.node.groups.get(GROUP) is None
        await rig.consumer.pop()
        assert rig.app.node.groups.get(GROUP) is not None
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path / "strict", topics=topics) as (app, client):
        await app.node.topics.ensure_derived(TOPIC, 1)
        refused = await client.ask(Consumer(client).header())
        assert refused.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@looped
async def test_an_answer_is_what_clients_take_apart(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        await rig.consumer.send(3)
        await rig.consumer.send(2, queue_id=1)
        frame = await rig.consumer.client.ask(rig.consumer.header(queue_id=-1))
        assert (frame.code, frame.flag, frame.remark) == (0, 1, "FOUND")
        assert sorted(frame.fields["startOffsetInfo"].split(";")) == ["0 0 0", "0 1 0"]
        assert sorted(frame.fields["msgOffsetInfo"].split(";")) == [
            "0 0 0,1,2",
            "0 1 0,1",
        ]
        del frame.fields["startOffsetInfo"], frame.fields["msgOffsetInfo"]
        assert frame.fields == {
            "popTime": str(rig.clock()),
            "invisibleTime": "60000",
            "reviveQid": "0",
            "restNum": "0",
        }
        assert len(frame.messages()) == 5
        empty = await rig.consumer.client.ask(rig.consumer.header())
        assert (empty.code, empty.remark) == (210, "NO_MESSAGE_IN_QUEUE")
        assert empty.fields == {
            "popTime": str(rig.clock()),
            "invisibleTime": "60000",
            "reviveQid": "0",
            "restNum": "0",
            "startOffsetInfo": "",
            "msgOffsetInfo": "",
        }


@looped
async def test_a_producer_cannot_forge_receipts(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        forged = receipt.dump(receipt.Receipt(0, 1, 1, 0, 0, "broker-0", 0), 0)
        await rig.consumer.send(1, pairs={"POP_CK": forged})
        await rig.consumer.take(1)
        rig.pass_time(60_100)
        await until(rig.pop.is_idle)
        (again,) = (await rig.consumer.take(1)).messages
        assert properties.parse(again.properties)["POP_CK"] != forged
        assert again.properties.count("POP_CK") == 1


@looped
async def test_a_header_of_16_bit_codes_is_a_pop_all_the_same(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        fields = to_fields(rig.consumer.header())
        answer = await rig.consumer.client.ask(
            200050, fields=fields, serialize_type=ROCKETMQ
        )
        assert popped(answer).offsets == [0]


@looped
async def test_a_pop_that_names_another_broker_is_sent_on_to_it(tmp_path: Path):
    async with two_running(tmp_path) as [(one, client), (two, _)]:
        await two.node.topics.ensure_derived(TOPIC, 1)
        async with connect(two.server.listeners[0]) as direct:
            await Consumer(direct).send(1)
        await until(lambda: two.node.config.broker in one.node.forwarder.others)
        header = Consumer(client).header(bname=two.node.config.broker)
        assert popped(await client.ask(header)).offsets == [0]


@looped
async def test_a_topic_that_was_changed_ends_the_waiting(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        waiting = rig.consumer.client.send(rig.consumer.header(poll_time=60_000))
        await until(lambda: len(rig.pop.polling) == 1)
        await rig.app.node.groups.put(Group(name=GROUP, consume_enable=False))
        async with connect(rig.app.server.listeners[0]) as other:
            await Consumer(other).send(1)
        assert (await waiting).code == ResponseCode.POLLING_TIMEOUT
        again = await rig.consumer.client.ask(rig.consumer.header(poll_time=60_000))
        assert again.code == ResponseCode.NO_PERMISSION


@looped
async def test_a_waiting_pop_gets_what_is_behind_much_that_it_passes_over(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        terms = 900
        looks = 3 * MAX_LOOKS // terms
        header = rig.consumer.header(
            exp_type="SQL92",
            exp=" OR ".join(["price = 20"] * terms),
            poll_time=60_000,
        )
        waiting = rig.consumer.client.send(header)
        await until(lambda: len(rig.pop.polling) == 1)
        # One send, so that it is woken once.
        passed_over = batch_of(*[b"x"] * (looks + 5), pairs={"price": "1"})
        wanted = batch_of(b"wanted", pairs={"price": "20"})
        async with connect(rig.app.server.listeners[0]) as other:
            await other.ask(sending(TOPIC, batch=True), passed_over + wanted)
        assert popped(await waiting).bodies == [b"wanted"]


@looped
@pytest.mark.parametrize("fails", ["taking", "answering", "looking"])
async def test_a_pop_that_fails_while_it_waits_is_answered_and_others_have_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
):
    async with rigged(tmp_path) as rig:
        node, client = rig.app.node, rig.consumer.client
        header = rig.consumer.header(poll_time=60_000, max_msg_nums=1)
        waiting = [client.send(header) for _ in range(2)]
        await until(lambda: len(rig.pop.polling) == 2)
        owner, name = node.pop.dispatch, "pop"
        if fails == "answering":
            owner, name = pop, "found"
        elif fails == "looking":
            # A quota limits it, but only once it waits.
            key = Key("topic", TOPIC)
            await node.quotas.change(key, lambda _: Quota(read_requests_per_s=1000))
            name = "is_there"
        original, calls = getattr(owner, name), []

        def fails_once(*args, **kwargs):
            calls.append(args)
            if len(calls) == 1:
                raise RuntimeError("a fault that nobody foresaw")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, fails_once)
        async with connect(rig.app.server.listeners[0]) as other:
            await Consumer(other).send(1)
            await until(lambda: waiting[0].done() or waiting[1].done())
            await Consumer(other).send(1)
        codes = sorted([(await one).code for one in waiting])
        assert codes == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR]
        assert len(rig.pop.polling) == 0
