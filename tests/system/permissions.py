"""Rights of principals, given and taken as Pulsar's permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.system.pulsar import Pulsar

GROUP_LOOKS = {
    RequestCode.GET_CONSUMER_CONNECTION_LIST,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.QUERY_TOPICS_BY_CONSUMER,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_LITE_GROUP_INFO,
}
"""Looking at a group, which Pulsar's permissions for a topic of its namespace allow."""
IN_PULSAR = {"": ["produce", "consume"], "Pub": ["produce"], "Sub": ["consume"]}


class Permissions:
    """Rights by principal, in Pulsar's words.

    Args:
        pulsar: It says what roles may do.
        space: tenant/namespace that the topics are in.
        rights: `Topic:NAME` or `Topic:*`, and an action where it is one alone; what is
            of no topic is left out.
    """

    def __init__(
        self, pulsar: Pulsar, space: str, rights: Mapping[str, Sequence[str]]
    ) -> None:
        self._pulsar = pulsar
        self._space = space
        self._rights = rights

    def all(self, groups: Mapping[str, str]) -> None:
        """Permit it; and groups to those alone who are named, by group."""
        for name in self._rights:
            self.change(name, "POST")
        # Or else whoever may consume a topic uses every group of its namespace.
        for group, name in groups.items():
            path = f"namespaces/{self._space}/permissions/subscription/{group}"
            self._pulsar.admin("POST", path, [name])

    def change(self, name: str, method: str) -> None:
        """Permit what one principal may do with topics, or permit it no more."""
        for right in self._rights[name]:
            resource, _, action = right.partition(" ")
            kind, _, topic = resource.partition(":")
            if kind == "Topic":
                path = f"persistent/{self._space}/{topic}/permissions/{name}"
                if topic == "*":
                    path = f"namespaces/{self._space}/permissions/{name}"
                self._pulsar.admin(method, path, IN_PULSAR[action])
