"""What a role may do, as Pulsar has it: permissions of namespaces, topics, groups.

One answer of Pulsar's has all permissions of a namespace. It is kept while somebody
asks, and asked for again every `refresh_s`, so a revocation is seen in that time. What
Pulsar said last counts for `outage_s` where it does not answer; then all is refused.

Source: PulsarAuthorizationProvider.java, Pulsar 4.0.8.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog

from ropeway.acl.api import Action, Decision, Resource, ResourceKind
from ropeway.acl.pulsar.admin import NOBODY, AdminError
from ropeway.acl.pulsar.pulsar_resources import place_of, space_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Need, Opinion, Principal, Source
    from ropeway.acl.pulsar.admin import Admin, Permissions
    from ropeway.acl.pulsar.options import Options
    from ropeway.acl.pulsar.pulsar_resources import PulsarResource
    from ropeway.common.eager import Eventual

log = structlog.get_logger(__name__)

_ALL = "*"
"""The name of all topics, or all groups; not one of somebody's."""
_TEMPLATE = Resource(ResourceKind.TOPIC, "TBW102")
"""Producers look at its route, of no namespace, before they send to a new topic."""
PRODUCE = "produce"
CONSUME = "consume"
_AT_A_TIME = 8
"""Questions to Pulsar; further ones wait."""
_FAILED_S = 1.0
"""Who asks again earlier than that is refused without asking Pulsar."""
_KEPT_ROUNDS = 30
"""A namespace that nobody asked for in so many rounds is forgotten."""

_NONE: frozenset[str] = frozenset()
_LOOKING = dict.fromkeys((Action.GET, Action.LIST), frozenset({PRODUCE, CONSUME}))
_OF_TOPICS = {
    **_LOOKING,
    Action.PUB: frozenset({PRODUCE}),
    Action.SUB: frozenset({CONSUME}),
}
_OF_GROUPS = dict.fromkeys(Action, frozenset({CONSUME})) | _LOOKING

_BY_NAMESPACE = {
    ResourceKind.TOPIC: _OF_TOPICS,
    # A group is a subscription: who may consume makes it and moves it.
    ResourceKind.GROUP: _OF_GROUPS,
    ResourceKind.NAMESPACE: _LOOKING,
}
"""Which of Pulsar's actions, granted in a namespace, allows what; the rest is for the
admins of the tenant."""

_BY_TOPIC = {
    ResourceKind.TOPIC: _OF_TOPICS,
    # It takes a group to consume a topic, but others' topics may be in that, too.
    ResourceKind.GROUP: {**_LOOKING, Action.SUB: frozenset({CONSUME})},
    ResourceKind.NAMESPACE: {},
}
"""Likewise, granted for a topic; for groups: for any topic of their namespace."""


class _Kept:
    """What is known of a namespace."""

    def __init__(self, place: PulsarResource) -> None:
        self.place = place
        self.permissions: Permissions = NOBODY
        self.said_at_s = float("-inf")
        """When Pulsar was asked for what is known."""
        self.failed_at_s = float("-inf")
        self.reason = "Pulsar was not asked yet"
        """Why it is not known, where it is not."""
        self.asking: asyncio.Task[None] | None = None
        self.unused_rounds = 0


class PulsarPermissions:
    """An authorizer: what Pulsar permits the roles of principals that have some.

    Args:
        options: How long what is believed.
        admin: Asks Pulsar.
        changed: Called when permissions are not what they were.
        clock: Seconds of any origin.
    """

    def __init__(
        self,
        options: Options,
        admin: Admin,
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._admin = admin
        self._changed = changed
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """By tenant/namespace, the last used one last."""
        self._were_forgotten = False
        """Since the last refresh: what was allowed by those may wait still."""
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    def authorize(
        self, principal: Principal, need: Need, _source: Source
    ) -> Eventual[Opinion]:
        """Whether Pulsar permits a principal's roles one of the actions."""
        if not principal.roles:
            return None
        if need.resource == _TEMPLATE and Action.GET in need.actions:
            return Decision(allowed=True, rule=f"everybody may look at {_TEMPLATE}")
        place = self._place(need.resource)
        if place is None or not place.is_legal:
            return Decision(
                allowed=False,
                rule="Pulsar: only superusers",
                reason=f"{need.resource} is in no namespace, or in several",
            )
        kept = self._find(place)
        if self._is_believed(kept):
            return self._decide(principal, need, place, kept)
        return self._ask_and_decide(principal, need, place, kept)

    async def refresh(self) -> None:
        """Ask Pulsar again for everything that is kept."""
        for space, kept in list(self._kept.items()):
            kept.unused_rounds += 1
            if kept.unused_rounds > _KEPT_ROUNDS:
                self._forget(space)
        if self._were_forgotten:
            # Nobody would see what is revoked there. Who waits with it has it judged,
            # and so it is asked for again.
            self._were_forgotten = False
            self._changed()
        await asyncio.gather(*(self._ask(kept) for kept in self._kept.values()))

    async def close(self) -> None:
        """Ask nothing more."""
        asking = [one.asking for one in self._kept.values() if one.asking]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _place(self, resource: Resource) -> PulsarResource | None:
        """Where it is; None where it is in no namespace, or in all of them."""
        tenant, namespace = self._options.tenant, self._options.namespace
        if resource.name == _ALL:
            return None
        if resource.kind in (ResourceKind.TOPIC, ResourceKind.GROUP):
            return place_of(resource.name, tenant, namespace)
        if resource.kind is ResourceKind.NAMESPACE:
            space = space_of(resource.name) or (tenant, namespace)
            return place_of("|".join(space) + "%", tenant, namespace)
        return None

    def _find(self, place: PulsarResource) -> _Kept:
        kept = self._kept.get(place.space)
        if kept is None:
            kept = self._kept[place.space] = _Kept(place)
            if len(self._kept) > self._options.namespaces:
                self._forget(next(iter(self._kept)))
        else:
            self._kept.move_to_end(place.space)
        kept.unused_rounds = 0
        return kept

    def _forget(self, space: str) -> None:
        del self._kept[space]
        self._were_forgotten = True

    def _is_believed(self, kept: _Kept) -> bool:
        now_s = self._clock()
        return (
            now_s < kept.said_at_s + self._options.outage_s
            or now_s < kept.failed_at_s + _FAILED_S
        )

    async def _ask_and_decide(
        self, principal: Principal, need: Need, place: PulsarResource, kept: _Kept
    ) -> Decision:
        await self._ask(kept)
        return self._decide(principal, need, place, kept)

    async def _ask(self, kept: _Kept) -> None:
        """Ask Pulsar; whoever wants to know it at the same time waits for that."""
        if kept.asking is None:
            loop = asyncio.get_running_loop()
            kept.asking = loop.create_task(self._ask_once(kept))
        await asyncio.shield(kept.asking)

    async def _ask_once(self, kept: _Kept) -> None:
        try:
            async with self._slots:
                # What is revoked while it answers is seen the next time.
                asked_at_s = self._clock()
                permissions = await self._admin.permissions(*kept.place[:2])
            # Nothing was decided by them where they were asked for the first time.
            is_first = kept.said_at_s == kept.failed_at_s == float("-inf")
            is_new = permissions != kept.permissions
            kept.permissions, kept.said_at_s = permissions, asked_at_s
            if is_new and not is_first:
                log.info("permissions have changed in Pulsar", of=kept.place.space)
                self._changed()
        except AdminError as error:
            kept.failed_at_s = self._clock()
            kept.reason = str(error)
            log.warning(
                "permissions not known anew",
                namespace=kept.place.space,
                reason=str(error),
            )
        finally:
            kept.asking = None

    def _decide(
        self, principal: Principal, need: Need, place: PulsarResource, kept: _Kept
    ) -> Decision:
        left_s = kept.said_at_s + self._options.outage_s - self._clock()
        if left_s <= 0:
            return Decision(
                allowed=False,
                rule="Pulsar: permissions are not known",
                reason=kept.reason,
                remark="permissions cannot be checked now; try again later",
                valid_s=0,
            )
        valid_s = min(left_s, self._options.refresh_s)
        for role in principal.roles:
            if rule := _permitted(kept.permissions, role, need, place):
                return Decision(allowed=True, rule=rule, valid_s=valid_s)
        return Decision(
            allowed=False,
            rule=f"Pulsar: permissions of {place.space}",
            reason=f"role {', '.join(principal.roles)} has none for this",
            valid_s=valid_s,
        )


def _permitted(
    permissions: Permissions, role: str, need: Need, place: PulsarResource
) -> str | None:
    """Which rule lets a role do one of the actions; None where none does."""
    if role in permissions.admins:
        return f"Pulsar: {role} is an admin of tenant {place.tenant}"
    kind, actions = need.resource.kind, need.of_clients
    if (
        kind is ResourceKind.GROUP
        and not _LOOKING.keys() & actions
        and not _may_subscribe(permissions, role, place)
    ):
        return None
    held = permissions.namespace.get(role, _NONE)
    if any(held & _BY_NAMESPACE[kind].get(one, _NONE) for one in actions):
        return f"Pulsar: {role} may {_words(held)} in {place.space}"
    if kind is ResourceKind.TOPIC:
        held = permissions.topics.get(place.topic, {}).get(role, _NONE)
    else:
        held = permissions.any_topic.get(role, _NONE)
    if any(held & _BY_TOPIC[kind].get(one, _NONE) for one in actions):
        return f"Pulsar: {role} may {_words(held)} topics of {place.space}"
    return None


def _words(held: frozenset[str]) -> str:
    return " and ".join(sorted(held & {PRODUCE, CONSUME}))


def _may_subscribe(permissions: Permissions, role: str, place: PulsarResource) -> bool:
    """Whether the namespace leaves a group to a role, whatever else it may."""
    named = permissions.subscriptions.get(place.local)
    if named and role not in named:
        return False
    return not permissions.by_prefix or place.local.startswith(role)
