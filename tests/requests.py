"""What tests ask of a node: headers and bodies as a Java client writes them."""

from __future__ import annotations

from typing import Any

from ropeway.gateway.wire import batch, bodies, properties
from ropeway.gateway.wire.commands.pull import (
    COMMIT_OFFSET_FLAG,
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullMessage,
)
from ropeway.gateway.wire.commands.send import SendMessage, SendMessageV2


def sending(topic: str, *, v2: bool = True, **changes: Any) -> SendMessage:
    """The header of a send, as Java's producer has it."""
    pairs = {properties.UNIQ_KEY: "0" * 32, **changes.pop("pairs", {})}
    fields: dict[str, Any] = {
        "producer_group": "producers",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": properties.dump(pairs),
        "reconsume_times": 0,
        **changes,
    }
    return (SendMessageV2 if v2 else SendMessage)(**fields)


def pulling(
    topic: str, offset: int = 0, *, group: str = "readers", **changes: Any
) -> PullMessage:
    """The header of a pull that says itself what it wants, and does not wait."""
    fields: dict[str, Any] = {
        "consumer_group": group,
        "topic": topic,
        "queue_id": 0,
        "queue_offset": offset,
        "max_msg_nums": 32,
        "sys_flag": SUBSCRIPTION_FLAG,
        "commit_offset": 0,
        "suspend_timeout_millis": 0,
        "sub_version": 0,
        "subscription": "*",
        **changes,
    }
    return PullMessage(**fields)


def waiting(topic: str, offset: int = 0, **changes: Any) -> PullMessage:
    """The header of a pull that waits for messages."""
    return pulling(
        topic,
        offset,
        **{
            "sys_flag": SUBSCRIPTION_FLAG | SUSPEND_FLAG,
            "suspend_timeout_millis": 15_000,
            **changes,
        },
    )


def committing(topic: str, offset: int, commit_offset: int) -> PullMessage:
    """The header of a pull that says how far its group has come."""
    return pulling(
        topic,
        offset,
        sys_flag=SUBSCRIPTION_FLAG | COMMIT_OFFSET_FLAG,
        commit_offset=commit_offset,
    )


def heartbeat(
    client_id: str,
    *groups: str,
    topic: str = "orders",
    expression: str = "*",
    expression_type: str = bodies.TAG,
    version: int = 1,
    producers: tuple[str, ...] = (),
    **changes: Any,
) -> bytes:
    """The body of a heartbeat."""
    wanted = [
        bodies.SubscriptionData(
            topic=topic,
            sub_string=expression,
            expression_type=expression_type,
            sub_version=version,
        )
    ]
    return bodies.encode(
        bodies.HeartbeatData(
            client_id=client_id,
            producer_data_set=[bodies.ProducerData(one) for one in producers],
            consumer_data_set=[
                bodies.ConsumerData(
                    group_name=group, subscription_data_set=wanted, **changes
                )
                for group in groups
            ],
        )
    )


def batch_of(*texts: bytes, pairs: dict[str, str] | None = None) -> bytes:
    """The body of a batch."""
    text = properties.dump(pairs or {properties.UNIQ_KEY: "K"})
    return batch.encode_batch([batch.BatchEntry(0, one, text) for one in texts])
