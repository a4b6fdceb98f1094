"""Bodies for administrators are byte for byte what real brokers write."""

import re

import msgspec
import pytest

from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import RequestCode
from tests import captures

PAIR = re.compile(rb"(\{[^{}]*\}):(\{[^{}]*\})")


def captured(code: RequestCode) -> list[bytes]:
    """The bodies of successful answers, without repetitions."""
    answers = [one.response for one in captures.load(code) if one.response]
    return sorted(
        {
            answer.raw.body
            for answer in answers
            if answer.header["code"] == 0 and answer.raw.body
        }
    )


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (RequestCode.GET_ALL_TOPIC_CONFIG, admin_bodies.TopicTable),
        (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, admin_bodies.GroupTable),
        (RequestCode.GET_TOPIC_CONFIG, bodies.TopicConfig),
        (RequestCode.GET_PRODUCER_CONNECTION_LIST, admin_bodies.ProducerConnection),
        (RequestCode.GET_ALL_PRODUCER_INFO, admin_bodies.ProducerTable),
        (RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, admin_bodies.GroupList),
    ],
)
def test_captured_bodies_are_written_again_as_they_were(code, body):
    found = captured(code)
    assert found
    for data in found:
        if b"groupRetryPolicy" not in data and body is admin_bodies.GroupTable:
            continue  # 4.x has fewer members
        decoded = bodies.decode(body, data)
        assert msgspec.json.decode(bodies.encode(decoded)) == msgspec.json.decode(data)
        assert len(bodies.encode(decoded)) == len(data)


def test_topic_stats_are_written_as_captured():
    (newest,) = (
        data
        for data in captured(RequestCode.GET_TOPIC_STATS_INFO)
        if b"topicPutTps" in data
    )
    pairs = [
        (
            bodies.decode(bodies.MessageQueue, key),
            bodies.decode(admin_bodies.TopicOffset, value),
        )
        for key, value in PAIR.findall(newest)
    ]
    assert len(pairs) == 4
    stats = admin_bodies.TopicStats(admin_bodies.object_map(pairs), topic_put_tps=0.1)
    assert bodies.encode(stats) == newest


def test_a_table_without_a_count_of_its_own_is_of_state_zero():
    version = {"counter": 0, "stateVersion": 0, "timestamp": 0}
    assert msgspec.json.decode(bodies.encode(admin_bodies.DataVersion())) == version


def test_what_there_is_nothing_of_is_told_as_empty():
    table = bodies.encode(admin_bodies.ConsumerStatuses({}))
    assert table == b'{"consumerTable":{},"messageQueueTable":{}}'


def test_a_map_of_queues_is_read_as_it_was_written():
    known = [
        (bodies.MessageQueue("b", 0, "t"), 7),
        (bodies.MessageQueue("b", 1, "t"), -1),
    ]
    body = bodies.encode({"offsetTable": admin_bodies.object_map(known)})
    assert admin_bodies.read_object_map(body) == known
    assert admin_bodies.read_object_map(b"{}") == []


def test_consume_stats_are_written_as_captured():
    empty = admin_bodies.ConsumeStats(offset_table=admin_bodies.object_map([]))
    assert bodies.encode(empty) in captured(RequestCode.GET_CONSUME_STATS)
    broker = captured(RequestCode.GET_BROKER_CONSUME_STATS)[0]
    key, value = PAIR.findall(broker)[0]
    pair = (
        bodies.decode(bodies.MessageQueue, key),
        bodies.decode(admin_bodies.QueueProgress, value),
    )
    assert admin_bodies.object_map([pair]) == msgspec.Raw(b"{%b:%b}" % (key, value))
