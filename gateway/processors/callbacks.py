"""What a node tells and asks its clients by itself, on their own connections."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import TYPE_CHECKING

from ropeway.gateway.wire import admin_bodies
from ropeway.gateway.wire.bodies import encode
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, Language, RequestCode
from ropeway.gateway.wire.commands.callbacks import (
    NotifyConsumerIdsChanged,
    ResetClientOffset,
)
from ropeway.gateway.wire.commands.lite import NotifyUnsubscribeLite
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ropeway.gateway.node.calls import Calls, ClientAnswer
    from ropeway.gateway.node.clients import Clients, ConsumerGroup, Member
    from ropeway.gateway.node.link import Link
    from ropeway.gateway.wire.bodies import Body, MessageQueue
    from ropeway.gateway.wire.commands.group_admin import ResetOffset
    from ropeway.gateway.wire.commands.transactions import CheckTransactionState
    from ropeway.gateway.wire.header import Header

_JAVA_5_2 = 453
"""MQVersion.V5_2_0: ControllableOffset came with it."""

_opaques = itertools.count(1)

_TOLD_AT_ONCE = 1000
"""Clients that are told in one tick: some 2 ms."""


def notify_consumer_ids_changed(links: Iterable[Link], group: str) -> None:
    """Somebody joined or left a group: its members share the queues anew."""
    frame = encode_frame(
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        next(_opaques) & 0x7FFFFFFF,
        flag=ONE_WAY_FLAG,
        fields=to_fields(NotifyConsumerIdsChanged(consumer_group=group)),
    )
    for link in links:
        link.push(frame)


class GroupChanges:
    """Tells the members of groups that changed, so many in a tick of the loop.

    A client may be in a thousand groups, each of a hundred members, and leave them all
    at once. A group that changes again while it waits is told of once.
    """

    def __init__(self) -> None:
        self._changed: dict[str, Collection[Link]] = {}
        """Those that wait for a later tick."""
        self._told = 0
        """Clients that were told in this one."""
        self._is_due = False
        """Whether the next one is waited for."""

    def tell(self, links: Collection[Link], group: str) -> None:
        """A group has changed; its members are those that it has then."""
        if self._changed or self._told >= _TOLD_AT_ONCE:
            self._changed[group] = links
        else:
            self._tell(links, group)
        self._expect()

    def _tell(self, links: Collection[Link], group: str) -> None:
        notify_consumer_ids_changed(links, group)
        self._told += len(links) + 1

    def _expect(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due, self._told = False, 0
        while self._changed and self._told < _TOLD_AT_ONCE:
            group = next(iter(self._changed))
            self._tell(self._changed.pop(group), group)
        if self._changed:
            self._expect()


def notify_unsubscribe_lite(
    clients: Clients, group: str, client_id: str, lite_topic: str
) -> None:
    """Another client of the group has taken a lite topic."""
    member = clients.find_consumer(group, client_id)
    if member is None:
        return
    header = NotifyUnsubscribeLite(
        lite_topic=lite_topic, consumer_group=group, client_id=client_id
    )
    member.link.push(
        encode_frame(
            RequestCode.NOTIFY_UNSUBSCRIBE_LITE,
            next(_opaques) & 0x7FFFFFFF,
            flag=ONE_WAY_FLAG,
            fields=to_fields(header),
        )
    )


def check_transaction_state(
    link: Link, question: CheckTransactionState, half_message: bytes
) -> None:
    """Nobody has said how a transaction ended: its producer is asked."""
    link.push(
        encode_frame(
            RequestCode.CHECK_TRANSACTION_STATE,
            next(_opaques) & 0x7FFFFFFF,
            flag=ONE_WAY_FLAG,
            fields=to_fields(question),
            body=half_message,
        )
    )


def request_frame(request: Header, body: bytes, opaque: int) -> bytes:
    """A request to a client as a whole frame."""
    return encode_frame(
        row_of(type(request)).code, opaque, fields=to_fields(request), body=body
    )


async def ask(
    calls: Calls, link: Link, request: Header, body: bytes = b""
) -> ClientAnswer:
    """Ask a client something on its connection, and wait for its answer.

    Raises:
        NoAnswerError: There was none.
    """
    return await calls.ask(link, partial(request_frame, request, body))


def tell_reset(
    group: ConsumerGroup, request: ResetOffset, offsets: Mapping[MessageQueue, int]
) -> set[Link]:
    """Tell consumers where their group goes on, and say which have been told.

    Pull consumers take no notice of it, and for some push consumers it is better that
    their next pulls are answered so.
    """
    told = {
        link
        for link, member in group.members.items()
        if group.data.is_push and (group.data.is_broadcasting or _goes_by_it(member))
    }
    for link in told:
        link.push(_reset_frame(link, request, offsets))
    return told


def _goes_by_it(member: Member) -> bool:
    """Whether a push consumer does better with this than with a pull's answer.

    That makes C++ commit what it has not done, and Go and older Java wait longer. Java
    since 5.2 moves at once on a pull's answer, and would now wait for 10 s.
    """
    if member.language == Language.JAVA.name:
        return member.version < _JAVA_5_2
    return member.language in (Language.CPP.name, Language.GO.name)


def _reset_frame(
    link: Link, request: ResetOffset, offsets: Mapping[MessageQueue, int]
) -> bytes:
    body: Body
    if link.language == Language.CPP.name:
        body = admin_bodies.ResetQueues(
            [
                admin_bodies.ResetQueue(
                    queue.broker_name, offset, queue.queue_id, queue.topic
                )
                for queue, offset in offsets.items()
            ]
        )
    else:
        body = admin_bodies.ResetOffsets(admin_bodies.object_map(offsets.items()))
    header = ResetClientOffset(
        group=request.group,
        topic=request.topic,
        timestamp=request.timestamp,
        is_force=request.is_force,
    )
    return encode_frame(
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        next(_opaques) & 0x7FFFFFFF,
        flag=ONE_WAY_FLAG,
        fields=to_fields(header),
        body=encode(body),
    )
