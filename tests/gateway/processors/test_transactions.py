"""Transactions over the wire: what is stored, seen, answered and refused."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import TransactionsConfig
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import LitePullMessage
from ropeway.gateway.wire.commands.query import QueryMessage, ViewMessage
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.commands.transactions import (
    COMMIT,
    NOT_DECIDED,
    ROLLBACK,
    EndTransaction,
    ResumeCheckHalfMessage,
)
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.remoting import beat, looped, running, two_running, until
from tests.requests import batch_of, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Frame, Remoting

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
ENDS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
KEY = "0" * 32
SOON = TransactionsConfig(timeout_ms=100, check_interval_ms=1000, check_max=1)


async def half(client: Remoting, body: bytes = b"x", **changes) -> EndTransaction:
    """Send a half message; the header of its commit."""
    pairs = {"TRAN_MSG": "true", "PGROUP": "producers", **changes.pop("pairs", {})}
    asked = sending("orders", pairs=pairs, **{"sys_flag": 4, **changes})
    answer = await client.ask(asked, body)
    assert answer.code == 0
    return ending(answer)


def ending(answer: Frame, **changes) -> EndTransaction:
    reply = answer.read(SendReply)
    fields = {
        "producer_group": "producers",
        "tran_state_table_offset": reply.queue_offset,
        "commit_log_offset": parse_offset_msg_id(reply.msg_id).message_id,
        "commit_or_rollback": COMMIT,
        "msg_id": reply.transaction_id,
        **changes,
    }
    return EndTransaction(**fields)


def with_(header: EndTransaction, **changes) -> EndTransaction:
    fields = {name: getattr(header, name) for name in header.__struct_fields__}
    return EndTransaction(**{**fields, **changes})


async def received(client: Remoting, **changes):
    return (await client.ask(pulling("orders", **changes))).messages()


@looped
async def test_a_committed_message_is_what_was_sent_and_more(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        before_ms = time.time_ns() // 1_000_000
        end = await half(
            client,
            b"body",
            queue_id=2,
            flag=7,
            sys_flag=5,
            reconsume_times=1,
            pairs={"TAGS": "t", "KEYS": "a b", "user": "ü"},
        )
        assert (await received(client, queue_id=2)) == []
        answer = await client.ask(end)
        assert (answer.code, answer.remark) == (0, None)
        (found,) = await received(client, queue_id=2, subscription="t")
        assert (found.topic, found.queue_id, found.body) == ("orders", 2, b"body")
        assert (found.flag, found.sys_flag, found.reconsume_times) == (7, 9, 1)
        assert (found.queue_offset, found.born_ms) == (0, 1_700_000_000_000)
        assert f"{found.born_host[0]}:{found.born_host[1]}" == client.address
        assert found.store_host == ("127.0.0.1", app.server.listeners[0].port)
        assert found.store_ms >= before_ms
        assert found.prepared_transaction_offset == end.commit_log_offset
        assert properties.parse(found.properties) == {
            "UNIQ_KEY": KEY,
            "TRAN_MSG": "true",
            "PGROUP": "producers",
            "TAGS": "t",
            "KEYS": "a b",
            "user": "ü",
            "__transactionId__": KEY,
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
            "CLUSTER": "DefaultCluster",
        }
        for key in ("a", "b", KEY):
            answer = await client.ask(querying("orders", key))
            assert [one.queue_offset for one in answer.messages()] == [0]


def querying(topic: str, key: str) -> QueryMessage:
    return QueryMessage(
        topic=topic, key=key, max_num=10, begin_timestamp=0, end_timestamp=1 << 60
    )


@looped
async def test_nobody_sees_a_half_message(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        end = await half(client, pairs={"KEYS": "k"})
        for topic in ("orders", HALF):
            for key in ("k", KEY):
                answer = await client.ask(querying(topic, key))
                assert answer.code == ResponseCode.QUERY_NOT_FOUND
        for topic in (None, HALF, "orders"):
            wanted = ViewMessage(offset=end.commit_log_offset, topic=topic)
            assert (await client.ask(wanted)).code == ResponseCode.SYSTEM_ERROR
        for topic in (HALF, ENDS):
            answer = await client.ask(pulling(topic))
            assert answer.code == ResponseCode.NO_PERMISSION
            pull = pulling(topic)
            fields = {name: getattr(pull, name) for name in pull.__struct_fields__}
            answer = await client.ask(LitePullMessage(**fields))
            assert answer.code == ResponseCode.NO_PERMISSION
            assert (await client.ask(sending(topic), b"x")).code == 16
        assert app.node.topics.get("orders").partitions[0].end == 0
        assert len(app.node.transactions) == 1


@looped
async def test_a_rolled_back_message_is_never_seen(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        end = with_(await half(client), commit_or_rollback=ROLLBACK)
        assert (await client.ask(end)).code == 0
        await until(lambda: len(app.node.transactions) == 0)
        assert await received(client) == []
        again = await client.ask(end)
        assert (again.code, again.remark) == (
            0,
            f"transaction {KEY} was rolled back before; nothing was done",
        )
        other = await client.ask(with_(end, commit_or_rollback=COMMIT))
        assert other.code == ResponseCode.SYSTEM_ERROR
        assert other.remark == f"transaction {KEY} was rolled back before"


@looped
async def test_who_does_not_know_is_asked_later(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        end = with_(await half(client), commit_or_rollback=NOT_DECIDED)
        answer = await client.ask(end)
        assert (answer.code, answer.remark) == (0, "its producer is asked again later")
        assert len(app.node.transactions) == 1


@looped
@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"commit_or_rollback": 5}, 33, "commitOrRollback is 5; allowed: 0, 8, 12"),
        ({"producer_group": "others"}, 1, "The producer group wrong: others, and"),
        ({"tran_state_table_offset": 4}, 1, "The transaction state table offset wrong"),
        ({"commit_log_offset": -1}, 1, "Find prepared transaction message failed"),
        (
            {"commit_log_offset": 99, "tran_state_table_offset": 99},
            1,
            "Find prepared transaction message failed: there is none at offset 99",
        ),
    ],
)
async def test_an_end_that_fits_no_half_message_is_refused(
    tmp_path: Path, changes: dict, code: int, remark: str
):
    async with running(tmp_path) as (app, client):
        end = await half(client)
        answer = await client.ask(with_(end, **changes))
        assert remark in answer.remark
        assert answer.code == (ResponseCode.INVALID_PARAMETER if code == 33 else code)
        assert len(app.node.transactions) == 1


@looped
async def test_an_end_before_any_transaction_is_refused(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(sending("orders"), b"x")
        refused = await client.ask(ending(answer))
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "Find prepared transaction message failed" in refused.remark
        assert app.node.topics.get(HALF) is None


@looped
async def test_who_wants_to_be_asked_may_not_commit_after_that(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        # It was born long ago.
        pairs = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}
        end = await half(client, pairs=pairs)
        answer = await client.ask(end)
        assert answer.code == ResponseCode.ILLEGAL_OPERATION
        assert "allowed: 60000; its producer is asked instead" in answer.remark
        answered = await client.ask(with_(end, from_transaction_check=True))
        assert answered.code == 0
        now_ms = time.time_ns() // 1_000_000
        end = await half(client, pairs=pairs, born_timestamp=now_ms)
        assert (await client.ask(end)).code == 0
        assert len(await received(client)) == 2


@looped
@pytest.mark.parametrize(
    ("changes", "is_half"),
    [
        ({"sys_flag": 4}, True),
        ({"pairs": {"TRAN_MSG": "True"}}, True),
        ({"pairs": {"TRAN_MSG": "false"}}, False),
        ({"pairs": {"TRAN_MSG": "true", "DELAY": "1"}}, True),
        (
            {"pairs": {"TRAN_MSG": "true", "DELAY": "1"}, "reconsume_times": 1},
            False,
        ),
    ],
)
async def test_the_flag_or_the_property_makes_a_half_message(
    tmp_path: Path, changes: dict, is_half: bool
):
    async with running(tmp_path) as (app, client):
        for v2 in (False, True):
            answer = await client.ask(sending("orders", v2=v2, **changes), b"x")
            assert answer.code == 0
        assert len(app.node.transactions) == 2 * is_half
        if is_half:
            end = ending(answer)
            assert (await client.ask(end)).code == 0


@looped
async def test_what_a_client_kept_of_another_transaction_does_not_count(
    tmp_path: Path,
):
    async with running(tmp_path) as (_, client):
        first = await half(client, b"1")
        kept = {
            "TRAN_PREPARED_QUEUE_OFFSET": "0",
            "TRANSACTION_CHECK_TIMES": "15",
            "REAL_TOPIC": "elsewhere",
            "REAL_QID": "3",
            "__transactionId__": "other",
        }
        second = await half(client, b"2", pairs=kept)
        for end in (second, first):
            answer = await client.ask(end)
            assert (answer.code, answer.remark) == (0, None)
        assert [one.body for one in await received(client)] == [b"2", b"1"]


@looped
async def test_a_group_outside_the_properties_brings_nothing_in(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        group = "producers\x02TRAN_PREPARED_QUEUE_OFFSET\x01" + "7"
        asked = sending("orders", sys_flag=4, producer_group=group)
        answer = await client.ask(asked, b"x")
        assert (await client.ask(ending(answer))).code == 0


@looped
@pytest.mark.parametrize("sys_flag", [0x8, 0xC])
async def test_only_a_broker_makes_the_other_half(tmp_path: Path, sys_flag: int):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"first")
        answer = await client.ask(sending("orders", sys_flag=sys_flag), b"x")
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert f"sysFlag {sys_flag}" in answer.remark
        assert len(await received(client)) == 1


@looped
async def test_a_batch_is_no_transaction(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for sys_flag, pairs in ((4, {}), (0, {"TRAN_MSG": "true"})):
            body = batch_of(b"1", b"2", pairs={"UNIQ_KEY": "K", **pairs})
            asked = sending("orders", sys_flag=sys_flag, batch=True)
            answer = await client.ask(asked, body)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert "transaction" in answer.remark
        assert await received(client) == []
        assert len(app.node.transactions) == 0


@looped
async def test_ends_may_be_one_way(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        end = await half(client)
        client.send(end, one_way=True)
        client.send(end, one_way=True)
        assert len((await client.ask(pulling("orders", 0))).messages()) <= 1
        answer = await client.ask(end)
        assert answer.code == 0
        assert len(await received(client)) == 1


@looped
async def test_producers_are_asked_and_answer(tmp_path: Path):
    # It is not given up before the answer, however busy the machine is.
    patient = TransactionsConfig(timeout_ms=100, check_interval_ms=60_000, check_max=1)
    async with running(tmp_path, transactions=patient) as (_, client):
        await beat(client, "me", producers=("producers",))
        end = await half(client)
        asked = await client.asked()
        assert asked.code == 39
        assert asked.fields["transactionId"] == KEY
        assert asked.fields["bname"] == "broker-0"
        offset = int(asked.fields["tranStateTableOffset"])
        answered = with_(
            end,
            tran_state_table_offset=offset,
            commit_log_offset=int(asked.fields["commitLogOffset"]),
            from_transaction_check=True,
        )
        assert offset == end.tran_state_table_offset + 1
        assert (await client.ask(answered)).code == 0
        assert (await client.ask(end)).remark.endswith("nothing was done")
        (found,) = await received(client)
        assert found.prepared_transaction_offset == answered.commit_log_offset


@looped
async def test_a_message_that_was_given_up_can_be_asked_about_again(tmp_path: Path):
    async with running(tmp_path, transactions=SOON) as (app, client):
        await beat(client, "me", producers=("producers",))
        end = await half(client)
        await client.asked()
        await until(lambda: app.node.topics.get(GIVEN_UP))
        await until(lambda: len(app.node.transactions) == 0)
        (kept,) = (await client.ask(pulling(GIVEN_UP))).messages()
        assert (
            await client.ask(end)
        ).remark == f"transaction {KEY} was given up before"
        identity = f"7F00000100002A9F{kept.message_id:016X}"
        answer = await client.ask(ResumeCheckHalfMessage(msg_id=identity))
        assert answer.code == 0
        asked = await client.asked()
        assert asked.fields["tranStateTableOffset"] != "0"
        for wrong in ("nonsense", f"7F00000100002A9F{end.commit_log_offset:016X}"):
            answer = await client.ask(ResumeCheckHalfMessage(msg_id=wrong))
            assert answer.code != 0


@looped
async def test_an_end_finds_its_broker(tmp_path: Path):
    async with two_running(tmp_path) as ((_, client), (other, other_client)):
        asked = sending("orders", sys_flag=4, bname="broker-0")
        end = ending(await client.ask(asked, b"x"), bname="broker-0")
        await until(lambda: "broker-0" in other.node.forwarder.others)
        assert (await other_client.ask(end)).code == 0
        await client.ask(sending("orders", bname="broker-0"), b"y")
        found = await client.ask(pulling("orders", bname="broker-0"))
        assert [one.body for one in found.messages()] == [b"x", b"y"]


@looped
async def test_transactions_outlive_a_stop(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        # The older one is open: how those behind it ended is known for as long.
        open_ = await half(client, b"open")
        ended = await half(client, b"ended")
        assert (await client.ask(ended)).code == 0
    async with running(tmp_path) as (app, client):
        await until(lambda: len(app.node.transactions) == 1)
        assert (await client.ask(open_)).code == 0
        assert (await client.ask(ended)).remark.endswith("nothing was done")
        assert [one.body for one in await received(client)] == [b"ended", b"open"]
