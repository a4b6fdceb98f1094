"""What queues hold, and how far groups have come in them."""

from ropeway.client import MessageQueue, QueueLag
from ropeway.client.lags import read_lags


def test_fastjsons_maps_with_objects_as_keys_are_read():
    body = (
        b'{"consumeTps":0.0,"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:'
        b'{"brokerOffset":9,"consumerOffset":4,"lastTimestamp":0,"pullOffset":9},'
        b'{"brokerName":"b","queueId":0,"topic":"t"}:'
        b'{"brokerOffset":3,"consumerOffset":3,"lastTimestamp":0}}}'
    )
    lags = read_lags(body)
    assert lags == [
        QueueLag(MessageQueue("t", "b", 0), committed=3, end=3),
        QueueLag(MessageQueue("t", "b", 1), committed=4, end=9),
    ]
    assert [lag.lag for lag in lags] == [0, 5]
    assert read_lags(b'{"consumeTps":0.0,"offsetTable":{}}') == []
