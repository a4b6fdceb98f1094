"""A RocketMQ client in Python: asyncio first, with a thin synchronous front.

Primitives: a `Producer` sends; a `BatchProducer` sends many messages as one; a
`PushConsumer` calls handlers; a `PullConsumer` is asked; an `Admin` looks at topics,
groups and messages; a `BulkReader` gives ranges of queues as columns.
`ropeway.client.sync` has some of them without asyncio. They speak RocketMQ's remoting
protocol, with Ropeway and with RocketMQ's own brokers from 4.9 on; but batches are
Ropeway's alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ropeway.client.admin import Admin
from ropeway.client.config import ClientConfig, ConsumerConfig, ProducerConfig
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
from ropeway.gateway.wire.commands.compaction import QueueCompaction, TopicCompaction
from ropeway.gateway.wire.commands.timers import WaitingMessage

if TYPE_CHECKING:
    from ropeway.client.batch_producer import BatchProducer
    from ropeway.client.bulk import BulkReader, MessagesGoneError
    from ropeway.client.consumer import PushConsumer
    from ropeway.client.offsets import OffsetFileError
    from ropeway.client.producer import Producer
    from ropeway.client.pull_consumer import PullConsumer
    from ropeway.client.queue_selector import select_by_keys, select_by_sharding_key
    from ropeway.client.subscription import Sql
    from ropeway.client.table import Table

__all__ = [
    "RETRY",
    "Admin",
    "BadResponseError",
    "BatchProducer",
    "BulkReader",
    "ClientClosedError",
    "ClientConfig",
    "ConnectionFailedError",
    "ConsumeFrom",
    "ConsumeResult",
    "ConsumerConfig",
    "Credentials",
    "Message",
    "MessageQueue",
    "MessagesGoneError",
    "OffsetFileError",
    "Producer",
    "ProducerConfig",
    "PullConsumer",
    "PushConsumer",
    "QueueCompaction",
    "QueueLag",
    "QueueSpan",
    "ReceivedMessage",
    "RemotingError",
    "RequestTimeoutError",
    "ResponseError",
    "SendResult",
    "SendStatus",
    "Sql",
    "Table",
    "TopicCompaction",
    "TopicNotFoundError",
    "WaitingMessage",
    "select_by_keys",
    "select_by_sharding_key",
]

_LATER = {
    "BatchProducer": "batch_producer",
    "BulkReader": "bulk",
    "MessagesGoneError": "bulk",
    "OffsetFileError": "offsets",
    "Producer": "producer",
    "PullConsumer": "pull_consumer",
    "PushConsumer": "consumer",
    "Sql": "subscription",
    "Table": "table",
    "select_by_keys": "queue_selector",
    "select_by_sharding_key": "queue_selector",
}
"""What is imported when it is asked for, and from where: a command that only asks a
question neither sends nor consumes."""


def __getattr__(name: str) -> Any:
    """Import what stands in `_LATER`."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found
