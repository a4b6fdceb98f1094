"""What queues hold, and how far groups have come in them."""

from ropeway.client import MessageQueue, QueueLag, QueueSpan
from ropeway.client.lags import read_lags, read_spans


def test_fastjsons_maps_with_objects_as_keys_are_read():
    body = (
        b'{"consumeTps":0.0,"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:'
        b'{"brokerOffset":9,"consumerOffset":4,"lastTimestamp":0,"pullOffset":9},'
        b'{"brokerName":"b","queueId":0,"topic":"t"}:'
        b'{"brokerOffset":3,"consumerOffset":3,"lastTimestamp":0}}}'
    )
    lags = read_lags(body)
    assert lags == [
        QueueLag(MessageQueue("t", "b", 0), committed=3, end=3, pulled=3),
        QueueLag(MessageQueue("t", "b", 1), committed=4, end=9, pulled=9),
    ]
    assert [lag.lag for lag in lags] == [0, 5]
    assert read_lags(b'{"consumeTps":0.0,"offsetTable":{}}') == []


def test_what_queues_hold_is_read_in_order():
    body = (
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:'
        b'{"lastUpdateTimestamp":7,"maxOffset":9,"minOffset":2},'
        b'{"brokerName":"b","queueId":0,"topic":"t"}:'
        b'{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0}},"topicPutTps":0.0}'
    )
    assert read_spans(body) == [
        QueueSpan(MessageQueue("t", "b", 0), begin=0, end=0),
        QueueSpan(MessageQueue("t", "b", 1), begin=2, end=9, newest_ms=7),
    ]


def test_all_is_left_to_read_where_nothing_was_committed():
    assert QueueLag(MessageQueue("t", "b", 0), committed=-1, end=3).lag == 3
