"""The registry of processors: which one works on the requests of each code.

A processor is registered by `@handles`, with what senders of its requests need, and
which nodes answer them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ropeway.common.eager import Eventual
from ropeway.gateway.processors.auditing import recorded
from ropeway.gateway.processors.context import Answer, Context, Later
from ropeway.gateway.processors.needs import NEEDS
from ropeway.gateway.wire.header import Header, row_of

if TYPE_CHECKING:
    from ropeway.gateway.processors.needs import Needs

H = TypeVar("H", bound=Header)
Result = Header | Answer | Later
Outcome = Eventual[Result]
Processor = Callable[[Any, Context], Outcome]
P = TypeVar("P", bound=Processor)

PROCESSORS: dict[int, Processor] = {}
"""Every processor by the code that it handles."""

ANYWHERE: set[int] = set()
"""Codes of requests that every node answers, whoever leads its broker."""

READS: set[int] = set()
"""Codes of requests that slaves answer, too."""

NAMING_BROKER: set[int] = set()
"""Codes of requests that may say which broker they are for."""


def handles(
    header: type[Header], needs: Needs, *, anywhere: bool = False, reads: bool = False
) -> Callable[[P], P]:
    """Make a function the processor of the command that a header declared.

    Args:
        header: What declared it.
        needs: What its sender must be allowed, where access control is on.
        anywhere: Whether a node works on it that does not lead its broker.
        reads: Whether one does that follows the broker's topics, since it asks for
            nothing but what they hold.
    """
    code = row_of(header).code

    def register(processor: P) -> P:
        if code in PROCESSORS:
            raise ValueError(f"{code.name} has two processors")
        PROCESSORS[code] = recorded(code, processor)
        NEEDS[code] = needs
        if anywhere:
            ANYWHERE.add(code)
        if reads:
            READS.add(code)
        if "bname" in header.__struct_fields__:
            NAMING_BROKER.add(code)
        return processor

    return register
