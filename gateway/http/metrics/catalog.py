"""Every metric: its name, kind, labels and meaning.

What RocketMQ's broker has too has its name and labels; the rest begins with `ropeway_`,
or is one of the `process_` metrics that all Prometheus clients have.

Source: BrokerMetricsConstant.java, DefaultStoreMetricsConstant.java and
BrokerMetricsManager.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Family(NamedTuple):
    """One metric with all its label values."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    """Besides those that all have, which `COMMON` names."""
    meaning: str


COMMON = ("cluster", "node_type", "node_id")
"""The cluster's name, `broker`, and the broker's name; `process_` metrics have none."""

_TOPIC = ("topic", "is_system")
_QUEUE = ("topic", "queue_id")
_GROUP = ("consumer_group", "topic", "is_retry", "is_system")

_FAMILIES = (
    Family(
        "rocketmq_broker_permission",
        "gauge",
        (),
        "What clients may do with the broker: the sum of 4 to read and 2 to write.",
    ),
    Family("rocketmq_topic_number", "gauge", (), "Topics of the broker."),
    Family("rocketmq_consumer_group_number", "gauge", (), "Consumer groups."),
    Family(
        "rocketmq_messages_in_total",
        "counter",
        _TOPIC,
        "Messages that were ever stored in a topic.",
    ),
    Family(
        "rocketmq_messages_out_total",
        "counter",
        _GROUP,
        "Messages that a group was given, since the node leads.",
    ),
    Family(
        "rocketmq_consumer_lag_messages",
        "gauge",
        _GROUP,
        "Messages that a group has not done, in all queues of a topic.",
    ),
    Family(
        "rocketmq_consumer_inflight_messages",
        "gauge",
        _GROUP,
        "Messages that a group was given and has not done.",
    ),
    Family(
        "rocketmq_producer_connections",
        "gauge",
        ("language", "version"),
        "Connected producers.",
    ),
    Family(
        "rocketmq_consumer_connections",
        "gauge",
        ("consumer_group", "language", "version", "consume_mode"),
        "Connected consumers.",
    ),
    Family(
        "rocketmq_half_messages",
        "gauge",
        (),
        "Messages of transactions that nobody has ended.",
    ),
    Family(
        "rocketmq_storage_size",
        "gauge",
        ("storage_type", "storage_medium"),
        "Bytes of the embedded log's files.",
    ),
    Family("ropeway_build_info", "gauge", ("version", "python"), "1; its labels tell."),
    Family(
        "ropeway_leader",
        "gauge",
        ("node",),
        "Whether this node leads its broker; 0 for one that stands by.",
    ),
    Family("ropeway_brokers", "gauge", (), "Brokers of the cluster that run."),
    Family(
        "ropeway_request_latency_seconds",
        "histogram",
        ("code", "request"),
        "From a request's arrival to its answer, of a sample; "
        "requests that wait for messages left out.",
    ),
    Family(
        "ropeway_requests_waiting",
        "gauge",
        (),
        "Requests that came and are not begun.",
    ),
    Family(
        "ropeway_requests_waiting_bytes", "gauge", (), "The bytes of those requests."
    ),
    Family("ropeway_connections", "gauge", ("listener",), "Open connections."),
    Family("ropeway_tasks", "gauge", (), "Tasks of the event loop."),
    Family("ropeway_long_polls_held", "gauge", (), "Pulls that wait for messages."),
    Family(
        "ropeway_requests_forwarded_total",
        "counter",
        (),
        "Requests that other nodes were asked to work on.",
    ),
    Family(
        "ropeway_requests_forward_failures_total",
        "counter",
        (),
        "Those of them that were not answered.",
    ),
    Family(
        "ropeway_quota_limit",
        "gauge",
        ("kind", "resource", "limit"),
        "What may be taken a second, of a topic or by a group, on this node.",
    ),
    Family(
        "ropeway_quota_throttled_total",
        "counter",
        ("kind", "resource", "what"),
        "How often a send's connection or a read was held back for that.",
    ),
    Family(
        "ropeway_audit_lines_total",
        "counter",
        ("kind",),
        "Lines for the audit log: of changes, and of attempts (refusals, sign-ins).",
    ),
    Family(
        "ropeway_audit_lines_left_out_total",
        "counter",
        ("kind",),
        "Those of them that were beyond the rate, and are only counted.",
    ),
    Family(
        "ropeway_audit_lines_unwritten_total",
        "counter",
        (),
        "Lines that the audit file did not take.",
    ),
    Family(
        "ropeway_log_overdue_seconds",
        "gauge",
        (),
        "How long the oldest message waits for the log, once that is too long; or 0.",
    ),
    Family(
        "ropeway_log_misfits_total",
        "counter",
        (),
        "How often Pulsar had lost or deleted where a queue ended; the log says where.",
    ),
    Family(
        "ropeway_timer_unread_messages",
        "gauge",
        (),
        "Messages with a delivery time that the timer has not taken in yet.",
    ),
    Family(
        "ropeway_derived_store_lag_records",
        "gauge",
        ("store",),
        "Records of the log that a store made from it has not taken in.",
    ),
    Family(
        "ropeway_derived_store_size_bytes", "gauge", ("store",), "Bytes of its files."
    ),
    Family(
        "ropeway_derived_store_rebuilt_timestamp_seconds",
        "gauge",
        ("store",),
        "When it was last made again from the log, since 1970; 0: not by this process.",
    ),
    Family(
        "ropeway_derived_store_rebuild_seconds",
        "gauge",
        ("store",),
        "How long that took.",
    ),
    Family(
        "ropeway_balance_measurements_total",
        "counter",
        (),
        "How often this node looked at brokers' loads, where it balances them.",
    ),
    Family(
        "ropeway_balance_failures_total",
        "counter",
        (),
        "How often it could not, or a move failed.",
    ),
    Family(
        "ropeway_balance_moves_total",
        "counter",
        (),
        "Queues that it moved by load.",
    ),
    Family(
        "ropeway_consumer_lag_queue_max_messages",
        "gauge",
        _GROUP,
        "The same as the lag of a group, in the queue where it is largest.",
    ),
    Family("ropeway_queue_first_offset", "gauge", _QUEUE, "A queue's oldest offset."),
    Family(
        "ropeway_queue_end_offset",
        "gauge",
        _QUEUE,
        "The offset that a queue's next message will get.",
    ),
    Family(
        "ropeway_scrape_seconds", "gauge", (), "What writing these metrics has taken."
    ),
    Family("process_cpu_seconds_total", "counter", (), "User and system CPU time."),
    Family("process_resident_memory_bytes", "gauge", (), "Resident memory."),
    Family("process_virtual_memory_bytes", "gauge", (), "Virtual memory."),
    Family("process_start_time_seconds", "gauge", (), "When it began, since 1970."),
    Family("process_open_fds", "gauge", (), "Open file descriptors."),
    Family("process_max_fds", "gauge", (), "The most of them that it may have."),
)

FAMILIES = {family.name: family for family in _FAMILIES}
"""Every metric by its name, in the order in which they are written."""
