"""What a node tells its clients without being asked, on their own connections."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from gateway.wire.commands.callbacks import NotifyConsumerIdsChanged
from gateway.wire.frame import encode_frame
from gateway.wire.header import to_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.node.clients import Link

_opaques = itertools.count(1)


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
