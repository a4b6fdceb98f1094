"""JSON bodies: what commands carry behind their headers.

Clients differ: enums come as names from Java and Go and as numbers from C++, hash
codes as text from Go. Decoding is lax about that. Encoding is compact, because a
space behind a colon breaks the Go client.

Source: the classes of the same names in org.apache.rocketmq.remoting.protocol.body,
heartbeat and route, RocketMQ 5.3.4, and captures.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.frame import I64
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

B = TypeVar("B", bound=msgspec.Struct)

CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
BROADCASTING = "BROADCASTING"
CLUSTERING = "CLUSTERING"
CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
TAG = "TAG"
SQL92 = "SQL92"
SUB_ALL = "*"

# A string, which stays as it is, or a number where a name belongs. A string without an
# end reaches to the end, or else each quotation mark in it would be tried again.
_BARE_NAME = re.compile(rb'"(?:[^"\\]|\\.)*\\?(?:"|\Z)|([{,]\s*)(-?\d+)\s*:', re.DOTALL)

MODELS = (BROADCASTING, CLUSTERING)
TYPES = (CONSUME_ACTIVELY, CONSUME_PASSIVELY, "CONSUME_POP")
TYPE_WORDS = dict(zip(TYPES, ("pull", "push", "pop"), strict=True))
"""The same for people. Source: ConsumeType.java, RocketMQ 5.3.4."""
WHERES = (
    CONSUME_FROM_LAST_OFFSET,
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)
"""Java's enums in order: C++ sends numbers."""


class Body(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object of the protocol.

    A heartbeat may have thousands of them, of which none can be part of a circle, so
    that the garbage collector need not look at them.
    """


class MessageQueue(Body, frozen=True):
    """A queue as clients name it."""

    broker_name: str
    queue_id: int
    topic: str


class SubscriptionData(Body, frozen=True):
    """What a consumer wants of a topic."""

    topic: str
    sub_string: str = SUB_ALL
    tags_set: tuple[str, ...] = ()
    code_set: tuple[int, ...] = ()
    """Hashes of the tags; the C++ client says 0 for each, so hash the tags anew."""
    sub_version: int = 0
    expression_type: str | None = TAG
    class_filter_mode: bool = False


class ConsumerData(Body, frozen=True):
    """One consumer of a client."""

    group_name: str
    consume_type: str | int | None = CONSUME_PASSIVELY
    message_model: str | int | None = CLUSTERING
    consume_from_where: str | int | None = CONSUME_FROM_LAST_OFFSET
    subscription_data_set: list[SubscriptionData] | None = None
    unit_mode: bool = False

    @property
    def is_broadcasting(self) -> bool:
        """Whether each client gets every message."""
        return named(self.message_model, MODELS) == BROADCASTING

    @property
    def is_push(self) -> bool:
        """Whether the client consumes by listeners, not by asking itself."""
        return named(self.consume_type, TYPES) == CONSUME_PASSIVELY


class ProducerData(Body, frozen=True):
    """One producer of a client."""

    group_name: str


class HeartbeatData(Body, frozen=True):
    """A client with all it has."""

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] | None = None
    consumer_data_set: list[ConsumerData] | None = None
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


class CheckClientBody(Body, frozen=True):
    """A subscription to be checked."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


class LockBatchBody(Body, frozen=True):
    """Queues that a client of a group wants to hold, or to give back."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = []
    only_this_broker: bool = False


class LockedQueues(Body, frozen=True):
    """The queues of a `LockBatchBody` that the client holds now."""

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(name="lockOKMQSet")


class ConsumerIdList(Body, frozen=True):
    """The clients that consume in a group."""

    consumer_id_list: list[str]


class QueueData(Body, frozen=True, kw_only=True):
    """A topic's queues on one broker."""

    broker_name: str
    perm: int
    read_queue_nums: int
    topic_sys_flag: int = 0
    write_queue_nums: int


class BrokerData(Body, frozen=True):
    """A broker and where it is: broker id (0 is the master) to address."""

    broker_addrs: dict[str, str]
    broker_name: str
    cluster: str
    enable_acting_master: bool = False


class TopicRoute(Body, frozen=True):
    """Where a topic's queues are."""

    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | msgspec.UnsetType = msgspec.UNSET
    queue_datas: list[QueueData] = []


class ClusterInfo(Body, frozen=True):
    """Every broker, and the brokers of every cluster."""

    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, list[str]]


class TopicList(Body, frozen=True, kw_only=True):
    """Names of topics."""

    broker_addr: str | None = None
    topic_list: list[str]


class TopicConfig(Body, frozen=True, kw_only=True):
    """How a topic is set up on a broker."""

    attributes: dict[str, str] = {}
    mirrored: bool | msgspec.UnsetType = msgspec.UNSET
    """Ours, unknown to others, where it is so: as of `routing.api.Topic`."""
    writes: str | msgspec.UnsetType = msgspec.UNSET
    """Likewise, of a mirror."""
    cut_offsets: list[int] | msgspec.UnsetType = msgspec.UNSET
    """Likewise, of one that was cut over."""
    order: bool = False
    perm: int = 6
    read_queue_nums: int = 16
    topic_filter_type: str | int = "SINGLE_TAG"
    topic_name: str
    topic_sys_flag: int = 0
    write_queue_nums: int = 16


class TopicConfigList(Body, frozen=True):
    """How several topics are to be set up."""

    topic_config_list: list[TopicConfig]


class ExponentialRetry(Body, frozen=True):
    """Waits that grow by a factor, in milliseconds."""

    initial: I64 = 5_000
    max: I64 = 7_200_000
    multiplier: I64 = 2


class CustomizedRetry(Body, frozen=True):
    """Waits one by one, in milliseconds."""

    next: list[I64]


class RetryPolicy(Body, frozen=True):
    """How long a group waits between retries: CUSTOMIZED or EXPONENTIAL.

    Source: GroupRetryPolicy.java, RocketMQ 5.3.4.
    """

    customized_retry_policy: CustomizedRetry | msgspec.UnsetType | None = msgspec.UNSET
    exponential_retry_policy: ExponentialRetry | msgspec.UnsetType | None = (
        msgspec.UNSET
    )
    type: str | None = "CUSTOMIZED"


class GroupConfig(Body, frozen=True, kw_only=True):
    """How a consumer group is set up on a broker."""

    attributes: dict[str, str] = {}
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: int = 15
    group_name: str
    group_retry_policy: RetryPolicy = RetryPolicy()
    group_sys_flag: int = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: int = 16
    retry_queue_nums: int = 1
    which_broker_when_consume_slowly: int = 1


class GroupConfigList(Body, frozen=True):
    """How several consumer groups are to be set up."""

    group_config_list: list[GroupConfig]


def decode(body: type[B], data: bytes) -> B:
    """Read a body.

    Numbers may stand unquoted as names, as fastjson writes broker ids.

    Raises:
        HeaderError: It is not JSON, or a member is missing or wrong; says which.
    """
    try:
        try:
            return msgspec.json.decode(data, type=body, strict=False)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            quoted = _BARE_NAME.sub(_quote, data)
            return msgspec.json.decode(quoted, type=body, strict=False)
    except UNREADABLE as error:
        raise HeaderError(f"{body.__name__}: {reason_of(error)}") from error


def _quote(found: re.Match[bytes]) -> bytes:
    before, name = found.groups()
    return b'%b"%b":' % (before, name) if name else found[0]


def encode(body: Any) -> bytes:
    """Write a body, compactly."""
    return msgspec.json.encode(body)


def named(value: str | int | None, names: tuple[str, ...]) -> str | None:
    """The name of an enum's value that came as a name or as a number."""
    if isinstance(value, int):
        return names[value] if 0 <= value < len(names) else None
    return value
