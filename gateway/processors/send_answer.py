"""The answer of a send, when it is known what has become of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.send_codec import sent_frame

if TYPE_CHECKING:
    from ropeway.gateway.processors.context import Context
    from ropeway.storage.api import LogError


def stored(
    context: Context,
    queue_id: int,
    unique_key: str,
    id_base: int,
    count: int,
    recall_handle: bytes,
    offset: int,
    error: LogError | None,
) -> None:
    """Answer a send with what has become of it."""
    peer = context.peer
    if error is not None:
        context.refuse(code_of(error) or ResponseCode.SYSTEM_ERROR, str(error))
        return
    if peer.take_answer is not None:
        identity = f"{peer.id_prefix.decode()}{id_base | offset:016X}"
        reply = SendReply(
            identity, queue_id, offset, unique_key, recall_handle.decode() or None
        )
        context.answer(reply)
        return
    if context.came_s:
        context.node.latencies.observe(context.code, context.came_s)
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
            recall_handle,
        )
    )
