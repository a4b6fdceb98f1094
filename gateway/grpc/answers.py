"""What answers of processors say, for methods of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ropeway.gateway.grpc.statuses import RefusedError, code_of
from ropeway.gateway.wire import message
from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.processors.context import Answer

H = TypeVar("H", bound=Header)


def refused(answer: Answer) -> RefusedError:
    """What the client is told of an answer that is no success."""
    return RefusedError(code_of(answer.code), answer.remark or "")


def lacks(kind: type[Header]) -> HeaderError:
    """What is wrong with an answer that lacks its own fields."""
    return HeaderError(f"an answer without the fields of {kind.__name__}")


def header_of(answer: Answer, kind: type[H]) -> H:
    """An answer's own fields.

    Raises:
        HeaderError: It lacks them.
    """
    if not isinstance(answer.header, kind):
        raise lacks(kind)
    return answer.header


def messages_of(answer: Answer) -> Iterator[message.Message]:
    """The stored messages that an answer brought.

    Raises:
        MessageError: The bytes are not those of whole messages.
    """
    for piece in answer.records or (answer.body,):
        for stored in message.split(piece):
            yield message.decode(stored)
