"""Plain messages: from the bytes of a send to those of its answer, in few steps."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from gateway.node.node import now_ms
from gateway.processors.admission import admit_send
from gateway.processors.context import Context
from gateway.processors.dispatch import go_on, work_once
from gateway.processors.half import PREPARED, store_plain_half
from gateway.processors.needs import PUB, topic_need
from gateway.processors.plain_timed import store_plain_timed
from gateway.processors.stored import stored
from gateway.processors.throttling import charge_send
from gateway.wire import message
from gateway.wire.codes import RequestCode
from gateway.wire.frame import JSON, decode_envelope
from gateway.wire.plain import plain_record, plain_send
from storage.api import NotReadyError

if TYPE_CHECKING:
    from acl.api import Guard, Need
    from gateway.node.node import Node
    from gateway.node.served_topic import ServedTopic
    from gateway.processors.context import Peer
    from gateway.wire.signing import Claims

_CODE = RequestCode.SEND_MESSAGE_V2
_DELAYED = "TIMER_DEL"
"""How properties begin that ask for a delivery time."""
_NAME = b'"n":"'
"""How clients' headers begin to say which broker they mean."""


def send_plain(
    node: Node, peer: Peer, header: bytes, body: bytes, came_s: float = 0.0
) -> bool:
    """Work on a request if it is plainly a send; if not, it is `dispatch`'s."""
    if (
        not node.leadership.leads
        or (node.forwarder.others and not _is_ours(node, header))
        or (send := plain_send(header)) is None
    ):
        return False
    (
        opaque,
        one_way,
        name,
        queue_id,
        sys_flag,
        born_ms,
        flag,
        reconsumed,
        text,
        claims,
    ) = send
    topic = node.topics.get(name)
    if (
        topic is None
        or not topic.plain
        or node.pending_sends.waiting
        or not 0 <= queue_id < len(topic.partitions)
        or not 0 < len(body) <= node.config.limits.message_bytes
        or (store := _STORES.get(sys_flag & message.TRANSACTION_MASK)) is None
    ):
        return False
    context = Context(node, peer, _CODE, opaque, one_way, body, False, came_s)
    if _DELAYED in text and store is store_plain:
        store = store_plain_timed
    guard = node.guard
    try:
        if guard is not None and _goes_on_later(context, guard, claims, name, header):
            return True
        is_stored = store(
            context,
            topic,
            queue_id,
            queue_id,
            sys_flag,
            born_ms,
            flag,
            reconsumed,
            text,
        )
    except NotReadyError:
        return False
    except Exception as error:  # noqa: BLE001 - turned into an answer
        context.fail(error)
        return True
    if is_stored and node.quotas.sends:
        charge_send(context, name)
    return is_stored


def _goes_on_later(
    context: Context, guard: Guard, claims: Claims | None, topic: str, header: bytes
) -> bool:
    """Whether it takes time to know if a send may come in; it goes on after that.

    Raises:
        Refusal: It may not.
    """
    admitted = admit_send(context, guard, claims, _needs(topic))
    if admitted is None:
        return False
    context.envelope = decode_envelope(JSON, header)
    go_on(context, work_once(admitted, context))
    return True


@lru_cache(maxsize=10_000)
def _needs(topic: str) -> tuple[Need, ...]:
    """What a send to a plain topic needs."""
    return (topic_need(topic, (PUB,)),)


def _is_ours(node: Node, header: bytes) -> bool:
    """Whether a header cannot but mean this broker; where it may, it is looked into."""
    return node.our_name in header or _NAME not in header


def store_plain(
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    asked_queue_id: int,
    sys_flag: int,
    born_ms: int,
    flag: int,
    reconsume_times: int,
    text: str,
) -> bool:
    """Store a message if it is plain, and answer."""
    peer = context.peer
    partition = topic.partitions[queue_id]
    id_base = topic.id_bases[queue_id]
    offset = partition.next_offset
    store_ms = now_ms()
    record = plain_record(
        topic.magic,
        topic.name_field,
        queue_id,
        sys_flag,
        born_ms,
        peer.packed_address,
        store_ms,
        peer.packed_advertised,
        reconsume_times,
        context.node.property_suffix,
        offset,
        id_base | offset,
        flag,
        context.body,
        text,
    )
    if record is None:
        return False
    done = partial(stored, context, asked_queue_id, record[2][-1], id_base, 1)
    partition.append([record], store_ms, done)
    return True


_STORES = {0: store_plain, PREPARED: store_plain_half}
"""How a message is stored, by what it says of a transaction."""
