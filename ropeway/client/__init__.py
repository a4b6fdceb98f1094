"""A RocketMQ client in Python: asyncio first, with a thin synchronous front.

Primitives: a `Producer` sends; a `PushConsumer` calls handlers; a `PullConsumer` is
asked; an `Admin` looks at topics, groups and messages. `ropeway.client.sync` has
the same without asyncio. They speak RocketMQ's remoting protocol, with Ropeway and
with RocketMQ's own brokers from 4.9 on.
"""

from ropeway.client.admin import Admin
from ropeway.client.choosing import select_by_sharding_key
from ropeway.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ropeway.client.consumer import PushConsumer
from ropeway.client.credentials import Credentials
from ropeway.client.errors import (
    BadResponseError,
    ClientClosedError,
    ConnectionFailedError,
    RemotingError,
    RequestTimeoutError,
    ResponseError,
    TopicNotFoundError,
)
from ropeway.client.lags import QueueLag, QueueSpan
from ropeway.client.message import (
    RETRY,
    ConsumeFrom,
    ConsumeResult,
    Message,
    MessageQueue,
    ReceivedMessage,
    SendResult,
    SendStatus,
)
from ropeway.client.offsets import OffsetFileError
from ropeway.client.producer import Producer
from ropeway.client.pull_consumer import PullConsumer

__all__ = [
    "RETRY",
    "Admin",
    "BadResponseError",
    "ClientClosedError",
    "ClientConfig",
    "ConnectionFailedError",
    "ConsumeFrom",
    "ConsumeResult",
    "ConsumerConfig",
    "Credentials",
    "Message",
    "MessageQueue",
    "OffsetFileError",
    "Producer",
    "ProducerConfig",
    "PullConsumer",
    "PushConsumer",
    "QueueLag",
    "QueueSpan",
    "ReceivedMessage",
    "RemotingError",
    "RequestTimeoutError",
    "ResponseError",
    "SendResult",
    "SendStatus",
    "TopicNotFoundError",
    "select_by_sharding_key",
]
