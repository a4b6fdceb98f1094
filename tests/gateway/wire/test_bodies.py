"""JSON bodies: real captures, clients' quirks, and what is wrong with others."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.bodies import (
    BrokerData,
    ClusterInfo,
    ConsumerData,
    ConsumerIdList,
    GroupConfig,
    HeartbeatData,
    LockBatchBody,
    LockedQueues,
    MessageQueue,
    QueueData,
    TopicConfig,
    TopicList,
    TopicRoute,
)
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import HeaderError
from tests import captures

REQUESTS = {
    RequestCode.HEART_BEAT: HeartbeatData,
    RequestCode.CHECK_CLIENT_CONFIG: bodies.CheckClientBody,
    RequestCode.LOCK_BATCH_MQ: LockBatchBody,
    RequestCode.UNLOCK_BATCH_MQ: LockBatchBody,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: GroupConfig,
}
ANSWERS = {
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: ConsumerIdList,
    RequestCode.LOCK_BATCH_MQ: LockedQueues,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: TopicRoute,
    RequestCode.GET_BROKER_CLUSTER_INFO: ClusterInfo,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicList,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: TopicList,
    RequestCode.GET_TOPIC_CONFIG: TopicConfig,
}


def same(ours: Any, real: Any, model: str) -> None:
    """All that a real body says is said by ours too, in whatever order and type."""
    if isinstance(real, dict):
        for name, value in real.items():
            assert name in ours, f"{model}.{name} is not declared"
            same(ours[name], value, f"{model}.{name}")
    elif isinstance(real, list):
        order = {str: str, int: int}.get(type(real[0]) if real else str, json.dumps)
        if real and isinstance(real[0], dict):
            assert len(ours) == len(real)
            for one, other in zip(ours, real, strict=True):
                same(one, other, model)
        else:
            assert sorted(map(str, ours), key=order) == sorted(
                map(str, real), key=order
            )
    else:
        assert str(ours) == str(real), model


@pytest.mark.parametrize("code", REQUESTS, ids=lambda code: code.name)
def test_captured_request_bodies_are_read_and_written_again(code: RequestCode) -> None:
    assert captures.load(code)
    for capture in captures.load(code):
        body = capture.request.raw.body
        got = bodies.decode(REQUESTS[code], body)
        same(json.loads(bodies.encode(got)), json.loads(body), REQUESTS[code].__name__)


@pytest.mark.parametrize("code", ANSWERS, ids=lambda code: code.name)
def test_captured_answer_bodies_are_read_and_written_again(code: RequestCode) -> None:
    seen = 0
    for capture in captures.load(code):
        if capture.response is None or not (body := capture.response.raw.body):
            continue
        got = bodies.decode(ANSWERS[code], body)
        real = json.loads(body.replace(b"{0:", b'{"0":'))
        same(json.loads(bodies.encode(got)), real, ANSWERS[code].__name__)
        seen += 1
    assert seen


def test_bodies_have_no_spaces_because_the_go_client_keeps_them() -> None:
    route = TopicRoute(
        broker_datas=[BrokerData({"0": "127.0.0.1:10911"}, "broker-0", "cluster")],
        queue_datas=[
            QueueData(
                broker_name="broker-0", perm=6, read_queue_nums=4, write_queue_nums=4
            )
        ],
    )
    assert bodies.encode(route) == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},'
        b'"brokerName":"broker-0","cluster":"cluster","enableActingMaster":false}],'
        b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-0","perm":6,'
        b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )


@pytest.mark.parametrize(
    ("client", "broadcasting", "push"),
    [
        (
            {"messageModel": "BROADCASTING", "consumeType": "CONSUME_PASSIVELY"},
            True,
            True,
        ),
        (
            {"messageModel": "CLUSTERING", "consumeType": "CONSUME_ACTIVELY"},
            False,
            False,
        ),
        ({"messageModel": 0, "consumeType": 1}, True, True),
        ({"messageModel": 1, "consumeType": 0}, False, False),
        ({"messageModel": 9, "consumeType": 9}, False, False),
        ({"messageModel": None, "consumeType": None}, False, False),
        ({}, False, True),
    ],
)
def test_enums_are_names_from_java_and_numbers_from_cpp(
    client: dict[str, object], broadcasting: bool, push: bool
) -> None:
    body = msgspec.json.encode({"groupName": "g", **client})
    got = bodies.decode(ConsumerData, body)
    assert (got.is_broadcasting, got.is_push) == (broadcasting, push)


def test_hash_codes_may_be_text_as_from_go() -> None:
    body = b'{"topic":"T","tagsSet":["TagA"],"codeSet":["2598919"]}'
    assert bodies.decode(bodies.SubscriptionData, body).code_set == (2598919,)


def test_numbers_may_be_names_and_what_looks_like_them_in_text_is_kept() -> None:
    body = (
        b'{"brokerAddrs":{0:"h:1", 1 :"h:2",-1:"a,3:\\"{4:"},'
        b'"brokerName":"b","cluster":"c"}'
    )
    got = bodies.decode(BrokerData, body)
    assert got.broker_addrs == {"0": "h:1", "1": "h:2", "-1": 'a,3:"{4:'}


@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 500_000,
        b'"' + b'\\"' * 500_000 + b"\\",
        b"{" * 1_000_000,
        b"{1" * 500_000,
        b"," + b" " * 1_000_000,
    ],
    ids=["open string", "open escape", "braces", "numbers", "spaces"],
)
def test_a_long_body_that_is_no_json_is_refused_at_once(data: bytes) -> None:
    # Were it read again from each place, this would take hours.
    with pytest.raises(HeaderError):
        bodies.decode(BrokerData, data)


def test_names_that_are_not_camel_case_are_kept() -> None:
    locked = LockedQueues([MessageQueue("b", 1, "T")])
    assert bodies.encode(locked).startswith(b'{"lockOKMQSet":[{')
    beat = HeartbeatData("client")
    assert bodies.encode(beat).startswith(b'{"clientID":"client"')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "HeartbeatData: "),
        (b"[]", "HeartbeatData: "),
        (b"{}", "clientID"),
        (b'{"clientID":{}}', "clientID"),
        (b'{"clientID":"\xff"}', "HeartbeatData: "),
        (b'{"clientID":"c","producerDataSet":7}', "producerDataSet"),
        (b'{"clientID":"c","consumerDataSet":[{}]}', "groupName"),
        (b'{"x":' + b"[" * 100_000, "HeartbeatData: "),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_body_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(HeaderError, match=said):
        bodies.decode(HeartbeatData, data)


def test_what_is_not_said_of_a_group_is_what_a_broker_assumes() -> None:
    # SubscriptionGroupConfig.java, RocketMQ 5.3.3.
    made = json.loads(bodies.encode(GroupConfig(group_name="g")))
    assert made.pop("groupRetryPolicy")["type"] == "CUSTOMIZED"
    assert made == {
        "attributes": {},
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeMessageOrderly": False,
        "consumeTimeoutMinute": 15,
        "groupName": "g",
        "groupSysFlag": 0,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": 16,
        "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
    }
    beat = bodies.decode(HeartbeatData, b'{"clientID":"c"}')
    assert (beat.heartbeat_fingerprint, beat.without_sub) == (0, False)


def test_what_is_not_said_of_retries_is_what_a_broker_assumes() -> None:
    # ExponentialRetryPolicy.java, RocketMQ 5.3.3.
    policy = b'{"type":"EXPONENTIAL","exponentialRetryPolicy":{}}'
    waits = bodies.decode(bodies.RetryPolicy, policy).exponential_retry_policy
    assert waits == bodies.ExponentialRetry(5_000, 7_200_000, 2)


def test_what_is_not_said_of_a_topic_is_what_a_broker_assumes() -> None:
    # TopicConfig.java, RocketMQ 5.3.3.
    topic = bodies.decode(TopicConfig, b'{"topicName":"t"}')
    assert json.loads(bodies.encode(topic)) == {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 16,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "t",
        "topicSysFlag": 0,
        "writeQueueNums": 16,
    }


def test_a_number_that_names_nothing_has_no_name() -> None:
    names = ("FIRST", "SECOND")
    assert [bodies.named(one, names) for one in (0, 1, 2, -1, "X", None)] == [
        *("FIRST", "SECOND", None, None, "X", None)
    ]
