"""A frame as tests look at it: its header taken apart."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from ropeway.gateway.wire import message
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.header import Header, from_fields

H = TypeVar("H", bound=Header)


class Frame(NamedTuple):
    """A frame that came, its header taken apart."""

    code: int
    opaque: int
    flag: int
    remark: str | None
    fields: dict[str, str]
    body: bytes
    raw: bytes

    def read(self, header: type[H]) -> H:
        """The fields as a header."""
        return from_fields(header, msgspec.Raw(msgspec.json.encode(self.fields)))

    def read_end(self) -> int:
        """The end of the queue, as a pull's answer has it."""
        return self.read(PullReply).max_offset

    def messages(self) -> list[message.Message]:
        """The body of a pull's answer."""
        return [message.decode(one) for one in message.split(self.body)]
