"""Headers of what a broker asks its clients, on their own connections."""

from __future__ import annotations

from gateway.wire.codes import RequestCode
from gateway.wire.header import Access, Header, request


@request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, access=Access.NONE)
class NotifyConsumerIdsChanged(Header, frozen=True):
    """Somebody joined or left the group: share the queues anew.

    Source: NotifyConsumerIdsChangedRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
