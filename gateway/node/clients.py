"""Who is connected: producers and consumers by group, each on its connection.

A consumer group tells all its members when one joins, leaves or wants something
else, so that they share the queues anew.

Source: ConsumerManager.java and ProducerManager.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import subscriptions
from ropeway.gateway.node.client_owners import ClientOwners
from ropeway.gateway.node.creations import (
    Registrations,
    TooManyError,
    check_name,
    maker_of,
)
from ropeway.gateway.request_limits import CreationsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ropeway.acl.api import Principal
    from ropeway.gateway.node.link import Link
    from ropeway.gateway.node.subscriptions import Subscription
    from ropeway.gateway.request_limits import RequestsConfig
    from ropeway.gateway.wire.bodies import ConsumerData

EXPIRY_MS = 120_000
"""A member without a heartbeat for so long is gone; clients send one each 30 s."""
MAX_ELSEWHERE = 10_000
"""Clients of other nodes that are remembered; of more, the oldest are looked for."""


class Member:
    """One client of a group."""

    __slots__ = ("client_id", "language", "link", "principal", "seen_ms", "version")

    def __init__(
        self,
        link: Link,
        client_id: str,
        seen_ms: int,
        principal: Principal | None = None,
    ) -> None:
        self.link = link
        self.client_id = client_id
        self.principal = principal
        """Who that is, where access control is on."""
        self.language = link.language
        self.version = link.version
        self.seen_ms = seen_ms


class ConsumerGroup:
    """The consumers of one group and what they want."""

    __slots__ = ("data", "members", "name", "notify", "subscriptions")

    def __init__(self, name: str, data: ConsumerData) -> None:
        self.name = name
        self.data = data
        self.notify = True
        self.members: dict[Link, Member] = {}
        self.subscriptions: dict[str, Subscription] = {}

    def update(self, data: ConsumerData) -> bool:
        """Take over a member's view of the group; tells whether it changed."""
        wanted = {}
        for one in data.subscription_data_set or ():
            known = self.subscriptions.get(one.topic)
            if known is not None and known.version >= one.sub_version:
                # Members that started earlier have an older view; the newest counts.
                wanted[one.topic] = known
            else:
                wanted[one.topic] = subscriptions.unread(one)
        changed = wanted.keys() != self.subscriptions.keys() or any(
            wanted[topic].version != known.version
            for topic, known in self.subscriptions.items()
        )
        self.data = data
        self.subscriptions = wanted
        return changed

    def subscription(self, topic: str, limits: RequestsConfig) -> Subscription | None:
        """What the group wants of a topic, ready for reading; None for nothing.

        Raises:
            NotCompiledError: It takes time to read: `sql.compile_later`, and again.
        """
        known = self.subscriptions.get(topic)
        if known is not None and not known.is_read:
            known = subscriptions.read(known, limits)
            if len(known.expression) <= subscriptions.KEPT_CHARACTERS:
                self.subscriptions[topic] = known
        return known


class Clients:
    """Every connected producer and consumer.

    All nodes of a broker know of them, and its leader alone tells consumers of changes:
    C++ clients look at a change on each of two threads, which may be all they have.

    Args:
        now_ms: The clock.
        notify: Called with the members and the name of a consumer group that changed;
            the members are those that it has when they are looked at.
        owners: Whose the client ids are.
        bounds: How much one user or address may register.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        notify: Callable[[Collection[Link], str], None],
        owners: ClientOwners | None = None,
        bounds: CreationsConfig | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._notify = notify
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Link, Member]] = {}
        self._groups_of_link: dict[Link, set[tuple[bool, str]]] = {}
        self._producer_links: dict[str, Link] = {}
        self._elsewhere: dict[str, str] = {}
        self._tells = True
        self.owners = owners or ClientOwners()
        bounds = bounds or CreationsConfig()
        self._registrations = Registrations(bounds.registrations)
        self._characters = bounds.client_id_characters

    async def take_over(self) -> None:
        """Tell of changes, and of those that nobody may have told of meanwhile."""
        if not self._tells:
            self._tells = True
            for group in self._consumers.values():
                self._tell(group)

    async def give_up(self) -> None:
        """Leave it to another node."""
        self._tells = False

    def consumer_group(self, name: str) -> ConsumerGroup | None:
        """The connected consumers of a group; None where there are none."""
        return self._consumers.get(name)

    def find_consumer(self, group: str, client_id: str) -> Member | None:
        """A client that consumes in a group; None where it is not connected."""
        found = self._consumers.get(group)
        members = found.members.values() if found is not None else ()
        return next((one for one in members if one.client_id == client_id), None)

    def consumer_groups(self) -> list[ConsumerGroup]:
        """Every group that has a connected consumer."""
        return list(self._consumers.values())

    def producers(self, group: str) -> list[Member]:
        """The connected producers of a group."""
        return list(self._producers.get(group, {}).values())

    def producer_groups(self) -> list[str]:
        """Every group that has a connected producer."""
        return list(self._producers)

    def find_producer(self, client_id: str) -> Link | None:
        """The connection of a client that produces; None where none of its is here."""
        return self._producer_links.get(client_id)

    def find_elsewhere(self, client_id: str) -> str | None:
        """The node, host:port, where a client of others was found last."""
        return self._elsewhere.get(client_id)

    def found_elsewhere(self, client_id: str, address: str | None) -> None:
        """A client is connected to another node; None: not to the one any more."""
        self._elsewhere.pop(client_id, None)
        if address is not None:
            self._elsewhere[client_id] = address
        if len(self._elsewhere) > MAX_ELSEWHERE:
            del self._elsewhere[next(iter(self._elsewhere))]

    def register_producer(
        self,
        link: Link,
        client_id: str,
        group: str,
        principal: Principal | None = None,
    ) -> None:
        """A heartbeat named this producer; nothing, where it has gone meanwhile.

        Raises:
            TakenError: The client id is another principal's.
            TooManyError: The principal, or the address, has too many.
            TooLongError: A name is too long.
        """
        check_name("client id", client_id, self._characters)
        check_name("producer group", group, self._characters)
        if link.closed:
            return
        self.owners.claim(link, client_id, principal)
        self._join(link, (False, group), principal)
        members = self._producers.setdefault(group, {})
        before = members.get(link)
        self._see(members, link, client_id, principal)
        self._producer_links[client_id] = link
        if before is not None and before.client_id != client_id:
            self._forget_producer(link, before.client_id)

    def register_consumer(
        self,
        link: Link,
        client_id: str,
        data: ConsumerData,
        principal: Principal | None = None,
        *,
        notify: bool = True,
    ) -> bool:
        """A heartbeat named this consumer; tells whether its group changed.

        Nothing does where it has gone meanwhile.

        Args:
            link: The connection it came on.
            client_id: Who sent it.
            data: The group, and what the client wants of which topics.
            principal: Who that is, where access control is on.
            notify: Whether the group wants its members told of changes.

        Raises:
            TakenError: The client id is another principal's.
            TooManyError: The principal, or the address, has too many.
            TooLongError: A name is too long.
        """
        check_name("client id", client_id, self._characters)
        if link.closed:
            return False
        self.owners.claim(link, client_id, principal)
        name = data.group_name
        self._join(link, (True, name), principal)
        group = self._consumers.get(name) or ConsumerGroup(name, data)
        changed = group.update(data)
        group.notify = notify
        self._consumers[name] = group
        joined = self._see(group.members, link, client_id, principal)
        if joined or changed:
            self._tell(group)
        return joined or changed

    def _tell(self, group: ConsumerGroup) -> None:
        if group.notify and self._tells:
            self._notify(group.members, group.name)

    def _see(
        self,
        members: dict[Link, Member],
        link: Link,
        client_id: str,
        principal: Principal | None,
    ) -> bool:
        member = members.get(link)
        if member is not None and member.client_id == client_id:
            member.seen_ms = self._now_ms()
            member.principal = principal
            return False
        members[link] = Member(link, client_id, self._now_ms(), principal)
        return True

    def touch(self, link: Link) -> None:
        """A heartbeat that says nothing but that the client lives."""
        for is_consumer, name in self._groups_of_link.get(link, ()):
            members = (
                self._consumers[name].members if is_consumer else self._producers[name]
            )
            members[link].seen_ms = self._now_ms()

    def unregister_producer(self, link: Link, group: str) -> None:
        """A producer stops."""
        members = self._producers.get(group, {})
        member = members.pop(link, None)
        if not members:
            self._producers.pop(group, None)
        self._leave(link, (False, group))
        if member is not None:
            self._forget_producer(link, member.client_id)

    def _forget_producer(self, link: Link, client_id: str) -> None:
        """Where a client id is, unless it has other producers on that connection."""
        if self._producer_links.get(client_id) is link and not any(
            self._producers[group][link].client_id == client_id
            for is_consumer, group in self._groups_of_link.get(link, ())
            if not is_consumer
        ):
            del self._producer_links[client_id]

    def unregister_consumer(self, link: Link, name: str) -> None:
        """A consumer stops; the others of its group share its queues."""
        self._leave(link, (True, name))
        group = self._consumers.get(name)
        if group is None or group.members.pop(link, None) is None:
            return
        if group.members:
            self._tell(group)
        else:
            del self._consumers[name]

    def _join(
        self, link: Link, group: tuple[bool, str], principal: Principal | None
    ) -> None:
        groups = self._groups_of_link.get(link, ())
        if group in groups:
            return
        try:
            self._registrations.add(link, maker_of(principal, link.source))
        except TooManyError:
            if not groups:
                self.owners.release(link)
            raise
        self._groups_of_link.setdefault(link, set()).add(group)

    def _leave(self, link: Link, group: tuple[bool, str]) -> None:
        groups = self._groups_of_link.get(link)
        if groups is None or group not in groups:
            return
        groups.remove(group)
        self._registrations.remove(link)
        if not groups:
            del self._groups_of_link[link]
            self.owners.release(link)

    def disconnected(self, link: Link) -> None:
        """A connection ended, and all that was on it."""
        self.owners.release(link)
        groups = self._groups_of_link.pop(link, set())
        if groups:
            self._registrations.remove(link, len(groups))
        for is_consumer, group in groups:
            if is_consumer:
                self.unregister_consumer(link, group)
            else:
                self.unregister_producer(link, group)

    def expire(self) -> list[Link]:
        """Give up members that have gone silent; their links, to be closed."""
        limit = self._now_ms() - EXPIRY_MS
        silent = {
            member.link
            for members in (
                *self._producers.values(),
                *(group.members for group in self._consumers.values()),
            )
            for member in members.values()
            if member.seen_ms < limit
        }
        for link in silent:
            self.disconnected(link)
        return list(silent)
