"""Plain messages: from the bytes of a send to those of its answer, in few steps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway.node.node import now_ms
from gateway.processors.context import Context
from gateway.processors.errors import code_of
from gateway.wire import message
from gateway.wire.codes import ROPEWAY_VERSION, RequestCode, ResponseCode
from gateway.wire.plain import plain_record, plain_send, sent_frame
from storage.api import NotReadyError

if TYPE_CHECKING:
    from gateway.node.node import Node
    from gateway.node.topics import ServedTopic
    from gateway.processors.context import Peer
    from storage.api import LogError

_CODE = RequestCode.SEND_MESSAGE_V2
_TRANSACTION = message.TRANSACTION_MASK
_NAME = b'"n":"'
"""How clients' headers begin to say which broker they mean."""


def send_plain(node: Node, peer: Peer, header: bytes, body: bytes) -> bool:
    """Work on a request if it is plainly a send; if not, it is `dispatch`'s."""
    if not node.leadership.leads or (
        node.forwarder.others and not _is_ours(node, header)
    ):
        return False
    send = plain_send(header)
    if send is None:
        return False
    opaque, one_way, name, queue_id, sys_flag, born_ms, flag, reconsumed, text = send
    topic = node.topics.get(name)
    if (
        topic is None
        or not topic.plain
        or not 0 <= queue_id < len(topic.partitions)
        or not 0 < len(body) <= node.config.limits.message_bytes
        or sys_flag & _TRANSACTION
    ):
        return False
    context = Context(node, peer, _CODE, opaque, one_way, body)
    try:
        return store_plain(
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


def stored(
    context: Context,
    queue_id: int,
    unique_key: str,
    id_base: int,
    count: int,
    offset: int,
    error: LogError | None,
) -> None:
    """Answer a send with what has become of it."""
    peer = context.peer
    if error is not None:
        context.refuse(code_of(error) or ResponseCode.SYSTEM_ERROR, str(error))
        return
    if context.one_way:
        peer.respond()
        return
    peer.respond(
        sent_frame(
            queue_id,
            unique_key,
            peer.id_prefix,
            id_base | offset,
            count,
            context.node.region_json,
            offset,
            context.opaque,
            ROPEWAY_VERSION,
        )
    )
