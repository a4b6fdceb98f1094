"""Dead letters of what was received from a migration's source: they stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.client.admin_mirrors import asking
from ropeway.client.errors import RemotingError
from ropeway.gateway.grpc.answers import refused
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node.source_routes import SourceError
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.client.connection import Response
    from ropeway.gateway.grpc.receipt_handles import Handle
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
    from ropeway.gateway.wire.header import Header

_ID_AT = slice(28, 36)
"""Where a stored message says which place it has in its broker's log."""


async def bury_at_source(of: Handle, letter: ConsumerSendMsgBack, node: Node) -> None:
    """Have a message of the source among the dead letters there.

    Args:
        of: By what it is in hand.
        letter: What asks for it, but for the message's id.
        node: Knows the source.

    Raises:
        RefusedError: It is gone there, or the source refused, or did not answer.
    """
    assert letter.origin_topic is not None, "whoever asks says it"
    asked = asking(letter.origin_topic, of.receipt.queue_id, of.offset, 1)
    found = await _ask(of, asked, node)
    offset = int.from_bytes(found.body[_ID_AT])
    await _ask(of, msgspec.structs.replace(letter, offset=offset), node)


async def _ask(of: Handle, header: Header, node: Node) -> Response:
    assert node.source is not None, "a broker of it is named"
    try:
        answer = await node.source.ask(of.receipt.broker, header, 0)
    except (RemotingError, SourceError) as error:
        raise RefusedError(Code.HA_NOT_AVAILABLE, str(error)) from error
    if answer.code != ResponseCode.SUCCESS:
        raise refused(Answer(answer.code, answer.remark))
    return answer
