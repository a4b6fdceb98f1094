"""Bodies that tell of lite topics are RocketMQ's, member for member."""

from ropeway.gateway.wire import bodies, lite_bodies
from ropeway.gateway.wire.admin_bodies import QueueProgress

GROUP_INFO = (
    b'{"earliestUnconsumedTimestamp":5,"group":"g","lagCountTopK":['
    b'{"earliestUnconsumedTimestamp":5,"lagCount":2,"liteTopic":"a"}],'
    b'"lagTimestampTopK":[],"parentTopic":"t","totalLagCount":2}'
)
TOPIC_INFO = (
    b'{"liteTopic":"a","parentTopic":"t","shardingToBroker":true,"subscriber":['
    b'{"clientId":"c","group":"g"}],"topicOffset":'
    b'{"lastUpdateTimestamp":7,"maxOffset":3,"minOffset":0}}'
)


def test_they_go_both_ways():
    for kind, data in (
        (lite_bodies.LiteGroupInfo, GROUP_INFO),
        (lite_bodies.LiteTopicInfo, TOPIC_INFO),
    ):
        assert bodies.encode(bodies.decode(kind, data)) == data


def test_what_is_not_known_is_left_out():
    client = lite_bodies.LiteClientInfo(
        client_id="c",
        group="g",
        last_access_time=-1,
        lite_topic_count=-1,
        parent_topic="t",
    )
    assert bodies.encode(client) == (
        b'{"clientId":"c","group":"g","lastAccessTime":-1,"lastConsumeTime":0,'
        b'"liteTopicCount":-1,"parentTopic":"t"}'
    )
    one = lite_bodies.LiteGroupInfo(
        earliest_unconsumed_timestamp=-1,
        group="g",
        lite_topic="a",
        lite_topic_offset_wrapper=QueueProgress(
            broker_offset=3, consumer_offset=3, last_timestamp=9, pull_offset=0
        ),
        parent_topic="t",
        total_lag_count=0,
    )
    assert bodies.encode(one) == (
        b'{"earliestUnconsumedTimestamp":-1,"group":"g","liteTopic":"a",'
        b'"liteTopicOffsetWrapper":{"brokerOffset":3,"consumerOffset":3,'
        b'"lastTimestamp":9,"pullOffset":0},"parentTopic":"t","totalLagCount":0}'
    )
