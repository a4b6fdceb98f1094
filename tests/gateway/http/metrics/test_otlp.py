"""What a receiver of OpenTelemetry's gets is what the page says, to the last bucket."""

from ropeway.gateway.http.metrics.otlp import Exporter
from ropeway.gateway.http.metrics.text import Page
from tests.gateway.http.receiver import receiving, values

WAIT_S = 60
ALL = {"cluster": "c", "node_type": "broker", "node_id": "b"}


def sent(page: Page):
    with receiving() as receiver:
        exporter = Exporter(receiver.endpoint, "node-7")
        try:
            assert exporter.send(page)
            return receiver.came.get(timeout=WAIT_S)
        finally:
            exporter.close()


def test_counters_gauges_and_histograms_come_as_they_are():
    page = Page(ALL)
    page.add("rocketmq_messages_in_total", 7, topic='say "a\\b"', is_system="false")
    page.add("process_resident_memory_bytes", 2.5)
    page.add_histogram(
        "ropeway_request_latency_seconds",
        (0.1, 1.0),
        (3, 0, 2),
        9.5,
        code="310",
        request="SEND_MESSAGE_V2",
    )
    request = sent(page)
    found = values(request)
    ((labels, point),) = found["rocketmq_messages_in_total"]
    assert labels == {**ALL, "topic": 'say "a\\b"', "is_system": "false"}
    assert point.as_int == 7
    assert 0 < point.start_time_unix_nano < point.time_unix_nano
    ((labels, point),) = found["process_resident_memory_bytes"]
    assert (labels, point.as_double) == ({}, 2.5)
    ((labels, point),) = found["ropeway_request_latency_seconds"]
    assert labels == {**ALL, "code": "310", "request": "SEND_MESSAGE_V2"}
    assert (point.count, point.sum) == (5, 9.5)
    assert list(point.explicit_bounds) == [0.1, 1.0]
    assert list(point.bucket_counts) == [3, 0, 2]
    assert not point.HasField("min")
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    (counter,) = [one for one in metrics if one.name == "rocketmq_messages_in_total"]
    assert counter.sum.is_monotonic
    assert counter.sum.aggregation_temporality == 2, "cumulative"


def test_a_receiver_knows_which_node_it_is():
    page = Page(ALL)
    page.add("ropeway_brokers", 1)
    attributes = sent(page).resource_metrics[0].resource.attributes
    told = {one.key: one.value.string_value for one in attributes}
    assert told["service.name"] == "ropeway"
    assert told["service.instance.id"] == "node-7"


def test_many_samples_are_sent_in_several_messages():
    page = Page(ALL)
    for number in range(4500):
        page.add("ropeway_queue_end_offset", number, topic="t", queue_id=str(number))
    with receiving() as receiver:
        exporter = Exporter(receiver.endpoint, "node")
        assert exporter.send(page)
        exporter.close()
        found = []
        while not receiver.came.empty():
            found += values(receiver.came.get())["ropeway_queue_end_offset"]
    assert sorted(point.as_int for _, point in found) == list(range(4500))
    assert receiver.came.empty()
