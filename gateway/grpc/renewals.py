"""Receipts that are renewed for push consumers, which have no time limit of their own.

A push consumer gets its messages for a minute, and the node keeps them for it as long
as the client is there, up to three hours. The client knows the first receipt alone;
here is what has become of it. After a restart nothing is renewed, and what was in hand
comes again after its minute.

Source: DefaultReceiptHandleManager.java and ProxyConfig.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ropeway.gateway.grpc import receipt_handles
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node.backoff import keep_doing
from ropeway.gateway.node.client_owners import is_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Principal
    from ropeway.gateway.grpc.receipt_handles import Handle
    from ropeway.gateway.grpc.sessions import Session

log = structlog.get_logger(__name__)

INVISIBLE_MS = 60_000
AHEAD_MS = 10_000
"""How long before its time is over a receipt is renewed."""
LONGEST_MS = 3 * 3_600_000
EVERY_S = 1.0
SLOT_MS = 1000
"""Receipts are renewed up to so much earlier, those of a slot together."""
_TOGETHER = 512
"""Of those that are renewed at once."""
GIVE_BACK_MS = 1000
"""After what time a message comes again whose consumer has gone."""


class _Holder:
    """A client that consumes a topic in a group, and when to look at what it has.

    A message in hand is no object of its own: where it was not renewed yet, there is
    but its receipt, and this. So a million of them take 143 MiB and not 682.
    """

    __slots__ = ("due", "group", "session", "topic")

    def __init__(self, session: Session, group: str, topic: str) -> None:
        self.session = session
        self.group = group
        self.topic = topic
        self.due: dict[int, list[str]] = {}
        """First receipts by the slot of time in which to renew them. Those that are
        done by then are passed over."""

    def plan(self, text: str, at_ms: int) -> None:
        """Have a receipt looked at."""
        self.due.setdefault(at_ms // SLOT_MS, []).append(text)

    def take_due(self, now_ms: int) -> list[str]:
        """Receipts to look at now."""
        now_slot = now_ms // SLOT_MS
        slots = [slot for slot in self.due if slot <= now_slot]
        return [text for slot in slots for text in self.due.pop(slot)]


class _Renewed(NamedTuple):
    """What has become of a receipt."""

    holder: _Holder
    text: str


class Renewals:
    """All receipts that are renewed. A look at them costs what is due.

    Args:
        now_ms: The clock.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._holders: dict[tuple[Session, str, str], _Holder] = {}
        self._kept: defaultdict[str, dict[str, _Holder | _Renewed]] = defaultdict(dict)
        """By group, and by the receipt that the client has."""

    def __len__(self) -> int:
        """How many are renewed."""
        return sum(map(len, self._kept.values()))

    def begin(self, session: Session, group: str, topic: str, handle: Handle) -> None:
        """A client has got a message."""
        place = (session, group, topic)
        holder = self._holders.get(place)
        if holder is None:
            holder = self._holders[place] = _Holder(*place)
        self._kept[group][handle.text] = holder
        holder.plan(handle.text, self._now_ms() + INVISIBLE_MS - AHEAD_MS)

    def end(self, group: str, text: str, principal: Principal | None = None) -> str:
        """A client is done with a message: the handle that counts now.

        What another principal has been given stays renewed for that one.
        """
        of_group = self._kept.get(group)
        kept = of_group.get(text) if of_group is not None else None
        if of_group is None or kept is None:
            return text
        holder = kept.holder if isinstance(kept, _Renewed) else kept
        if not is_same(holder.session.principal, principal):
            return text
        del of_group[text]
        return kept.text if isinstance(kept, _Renewed) else text

    async def run(self) -> None:
        """Renew for ever."""
        await keep_doing("renewals of receipts", EVERY_S, self.look)

    async def look(self) -> None:
        """Renew what is due, and give back what nobody has any more."""
        now_ms = self._now_ms()
        for place, holder in list(self._holders.items()):
            if holder.session.closed:
                del self._holders[place]
                texts = self._all_of(holder)
            else:
                texts = holder.take_due(now_ms)
            for at in range(0, len(texts), _TOGETHER):
                some = texts[at : at + _TOGETHER]
                await asyncio.gather(*(self._look_at(holder, one) for one in some))

    def _all_of(self, holder: _Holder) -> list[str]:
        return [
            text
            for text, kept in self._kept[holder.group].items()
            if kept is holder or (isinstance(kept, _Renewed) and kept.holder is holder)
        ]

    async def _look_at(self, holder: _Holder, text: str) -> None:
        of_group = self._kept[holder.group]
        kept = of_group.get(text)
        if kept is None:
            return
        since_ms = receipt_handles.handle(text).receipt.pop_ms
        over = holder.session.closed or self._now_ms() - since_ms > LONGEST_MS
        before = kept.text if isinstance(kept, _Renewed) else text
        if over:
            del of_group[text]
        try:
            renewed = await receipt_handles.keep(
                holder.session,
                receipt_handles.handle(before),
                holder.topic,
                holder.group,
                GIVE_BACK_MS if over else INVISIBLE_MS,
            )
        except RefusedError as error:
            of_group.pop(text, None)
            log.info(
                "receipt not renewed",
                group=holder.group,
                topic=holder.topic,
                client=holder.session.client_id,
                reason=error.message,
            )
            return
        if text in of_group:
            of_group[text] = _Renewed(holder, renewed.text)
            holder.plan(text, self._now_ms() + INVISIBLE_MS - AHEAD_MS)
