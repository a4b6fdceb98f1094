"""Messages as the page shows them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from ropeway.client.message import ReceivedMessage
    from ropeway.gateway.wire.trace import Step

SHORT = 120
"""Characters of a body that lists show."""
MAX_BODY_BYTES = 256 * 1024
"""Of a body that is shown; browsers do not like more."""


def in_list(message: ReceivedMessage) -> dict[str, Any]:
    """What a list shows of a message."""
    return {
        "id": message.offset_msg_id,
        "key_id": message.msg_id,
        "topic": message.topic,
        "from": message.queue.topic,
        "broker": message.queue.broker_name,
        "queue_id": message.queue.queue_id,
        "offset": message.queue_offset,
        "tag": message.tags,
        "keys": message.keys,
        "store_ms": message.store_ms,
        "size": len(message.body),
        "start": message.body[: 4 * SHORT].decode(errors="replace")[:SHORT],
    }


def whole(message: ReceivedMessage, trace: list[Step]) -> dict[str, Any]:
    """All that is known of a message."""
    body = message.body[:MAX_BODY_BYTES]
    return {
        **in_list(message),
        "body": _text(body),
        "body_base64": base64.b64encode(body).decode(),
        "cut": len(message.body) > MAX_BODY_BYTES,
        "compression": message.compression,
        "properties": message.properties,
        "reconsume_times": message.reconsume_times,
        "born_ms": message.born_ms,
        "born_host": host_port.join(*message.born_host),
        "store_host": host_port.join(*message.store_host),
        "trace": [one._asdict() for one in trace],
    }


def _text(body: bytes) -> str | None:
    """A body as text; None where it is none, so that it is shown as bytes."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        # A long text may have been cut within a character.
        if error.start < len(body) - 4 or len(body) < MAX_BODY_BYTES:
            return None
        text = body[: error.start].decode()
    return None if "\0" in text else text
