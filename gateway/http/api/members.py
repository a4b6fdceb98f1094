"""A group's consumers, as several brokers know them, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.client.versions import version_text
from ropeway.gateway.wire import bodies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.wire.admin_bodies import ConsumerConnection


def consumers(known: Iterable[ConsumerConnection]) -> dict[str, Any]:
    """Each client once, and what they want."""
    members: dict[str, Any] = {}
    subscriptions: dict[str, Any] = {}
    model = kind = None
    for one in known:
        model = one.message_model or model
        kind = one.consume_type or kind
        for client in one.connection_set:
            members[client.client_id] = {
                "id": client.client_id,
                "address": client.client_addr,
                "language": client.language,
                "version": version_text(client.version),
            }
        for topic, wanted in one.subscription_table.items():
            subscriptions[topic] = {
                "topic": topic,
                "expression": wanted.sub_string,
                "type": wanted.expression_type,
            }
    return {
        "model": model.lower() if model else None,
        "type": bodies.TYPE_WORDS.get(kind or ""),
        "members": [members[client_id] for client_id in sorted(members)],
        "subscriptions": [subscriptions[topic] for topic in sorted(subscriptions)],
    }
