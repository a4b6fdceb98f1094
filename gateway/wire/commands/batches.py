"""Requests of our own for batches: messages over many queues that appear together.

A producer stages messages at the broker of their queue, as often as it wants, and then
commits the batch at each broker that it staged at. Only what a commit names is ever
delivered.
"""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request

NO_BATCH = -1
"""The number before a producer's first batch."""


class StageReply(Header, frozen=True):
    """Where staged messages are kept."""

    offset: I64
    """What names them in the commit."""


@request(RequestCode.ROPEWAY_STAGE, reply=StageReply)
class Stage(Header, frozen=True):
    """Keep messages of one queue, which nobody sees before they are committed.

    The body has them as that of `SendBatchMessage` does.
    """

    producer_id: str
    topic: str
    queue_id: I32
    bname: str | None = None


@request(RequestCode.ROPEWAY_COMMIT_BATCH)
class CommitBatch(Header, frozen=True):
    """Deliver what the body, a `StagedBatch`, names of this broker: once.

    The answer's body is the `StagedBatch` that was committed first under this number;
    it is empty where the producer has committed later batches since.
    """

    producer_id: str
    batch_id: I64
    """0 or more; each batch of a producer has a higher one than those before."""
    bname: str | None = None


class StagedBatch(Body, frozen=True):
    """What makes a batch."""

    staged: dict[str, list[int]]
    """Broker to the offsets that its `StageReply`s told, in the order of delivery."""


class LastBatchReply(Header, frozen=True):
    """The answer to `LastBatch`."""

    batch_id: I64
    """`NO_BATCH` where there is none."""


@request(RequestCode.ROPEWAY_LAST_BATCH, reply=LastBatchReply)
class LastBatch(Header, frozen=True):
    """Ask which batch of a producer a broker has committed last."""

    producer_id: str
    bname: str | None = None
