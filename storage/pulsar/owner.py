"""Whose a namespace is: a cluster notes its id there, and refuses what is another's.

The note is a property of the namespace, `ropeway.cluster.ID`, whose value is the
cluster's name, for people. Before it is written, the cluster claims the namespace: it
makes a topic, which of all that come at the same moment one can.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct, structs

from ropeway.storage.api import LogForeignError, LogUnavailableError
from ropeway.storage.pulsar import pulsar_choice, selftest
from ropeway.storage.pulsar.admin import SHOWN_S
from ropeway.storage.pulsar.pulsar_id import (
    REPLICA,
    Expected,
    PulsarIds,
    schema_topic,
)
from ropeway.storage.pulsar.rest import NotPermittedError
from ropeway.storage.pulsar.selftest import PUBLIC, PulsarUnfitError
from ropeway.storage.pulsar.topic_names import CLAIM, PulsarName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.catalog import Catalog
    from ropeway.storage.pulsar.rest import TopicMetadata

PREFIX = "ropeway.cluster."
EMPTY = "empty"
"""What `adopts` says of a namespace that has nothing of what the routes say."""

Policies = dict[str, Any]

_log = structlog.get_logger()


class Owner(Struct, frozen=True):
    """The cluster that is to own the namespaces of a log."""

    id: str
    name: str
    topics: frozenset[str]
    """Those that routes say have partitions, as routes were before Pulsar was asked."""
    adopts: str | None = None
    """A namespace to take although it does not fit: of the cluster of that id, `EMPTY`,
    or `REPLICA`."""
    adopted: list[str] = []
    """Those that were taken so, as `tenant/namespace`."""
    pulsar_ids: PulsarIds | None = None
    """Which Pulsar cluster has the messages; None: nobody asks."""


def owners(policies: Mapping[str, Any]) -> dict[str, str]:
    """The clusters that noted their ids in a namespace, and their names."""
    properties = policies.get("properties") or {}
    return {
        key.removeprefix(PREFIX): value
        for key, value in properties.items()
        if key.startswith(PREFIX)
    }


async def take(
    admin: Admin, catalog: Catalog, owner: Owner | None, *, prepare: bool
) -> Expected | None:
    """Make the namespaces of a log fit to be its cluster's, and list their topics.

    Nothing is changed where they are another cluster's, or Pulsar is another one.

    Args:
        admin: The admin REST.
        catalog: Says which namespaces, and gets their topics.
        owner: The cluster that is to own them; None: nobody asks.
        prepare: As of `selftest.check`.

    Returns:
        By what this Pulsar cluster is known; None where it cannot be told from others.

    Raises:
        LogForeignError: One is another cluster's, or lost all topics; or Pulsar is not
            the one that has the messages. Says what to do.
        PulsarUnfitError: Something is missing.
        LogUnavailableError: The admin REST does not answer, or does not permit it.
    """
    policies = {space: await look(admin, space) for space in catalog.spaces}
    await catalog.load(space for space, found in policies.items() if found is not None)
    if owner is not None:
        for space, found in policies.items():
            for complaint in complaints(owner, space, found, catalog):
                raise LogForeignError(complaint)
    pulsar_id = await _check_pulsar(admin, catalog, owner, policies)
    await selftest.check(admin, policies, prepare=prepare)
    if owner is None:
        return None
    for space, found in policies.items():
        if is_adopted(owner, space, found, catalog):
            owner.adopted.append(space)
        await note(admin, space, owner, found or {})
    if owner.adopts is not None:
        _log.warning("leave --adopt out from now on: it is for one start")
    first = catalog.spaces[0]
    if pulsar_id is not None:
        pulsar_id = await pulsar_choice.note(admin, first, pulsar_id)
    if pulsar_id is None:
        return None
    return Expected(schema_topic(first), pulsar_id)


async def _check_pulsar(
    admin: Admin,
    catalog: Catalog,
    owner: Owner | None,
    policies: Mapping[str, Policies | None],
) -> str | None:
    """The id for this Pulsar cluster; None where it gets none.

    Raises:
        LogForeignError: It is not the one that has the messages.
    """
    first = catalog.spaces[0]
    if owner is None or owner.pulsar_ids is None or first == PUBLIC:
        return None
    adopted = is_adopted(owner, first, policies[first], catalog)
    return await pulsar_choice.check(
        admin,
        first,
        owner.pulsar_ids,
        is_there=policies[first] is not None,
        adopts=adopted or owner.adopts == REPLICA,
        has_topics=bool(owner.topics),
    )


def is_adopted(
    owner: Owner, space: str, policies: Policies | None, catalog: Catalog
) -> bool:
    """Whether a namespace is taken only since the owner adopts it."""
    as_it_is = structs.replace(owner, adopts=None)
    return bool(complaints(as_it_is, space, policies, catalog))


async def look(admin: Admin, space: str) -> Policies | None:
    """The policies of a namespace, as `Admin.policies`.

    Raises:
        PulsarUnfitError: The token has not the rights that everything needs.
        LogUnavailableError: The admin REST does not answer.
    """
    try:
        return await admin.policies(space)
    except NotPermittedError as error:
        tenant = space.partition("/")[0]
        raise PulsarUnfitError(
            f"{error}; who signs in must be known, and its role an admin of the "
            f"tenant: pulsar-admin tenants update {tenant} --admin-roles ROLE"
        ) from error


def complaints(
    owner: Owner | None, space: str, policies: Policies | None, catalog: Catalog
) -> list[str]:
    """Why a namespace cannot be a cluster's.

    Args:
        owner: The cluster; None where no node of it was ever started.
        space: The namespace, as `tenant/namespace`.
        policies: Its policies; None where there is no such namespace.
        catalog: The topics that are there.
    """
    found = [
        _foreign(owner, space, other, name)
        for other, name in sorted(owners(policies or {}).items())
        if owner is None or other not in (owner.id, owner.adopts)
    ]
    if owner is None:
        return found
    expected = [name for name in owner.topics if catalog.names.is_in(space, name)]
    if (
        expected
        and owner.adopts != EMPTY
        and not any(catalog.names.canonical(one) in catalog.topics for one in expected)
    ):
        state = "is not there" if policies is None else "has none of them"
        found.append(
            f"routes say that namespace {space} of Pulsar has {len(expected)} topics, "
            f"like {min(expected)}, and it {state}; set "
            "pulsar.tenant and pulsar.namespace to where they are, or restore them; to "
            f"make all anew, without messages: --adopt {EMPTY}"
        )
    return found


def _foreign(owner: Owner | None, space: str, other: str, name: str) -> str:
    this = (
        ", and this one has no id yet"
        if owner is None
        else f"; by its routes this one is {owner.name} of the id {owner.id}"
    )
    return (
        f"namespace {space} of Pulsar belongs to another cluster, {name} of the id "
        f"{other}{this}; set pulsar.namespace to one of its own, or `routes` to that "
        f"cluster's; where that cluster runs no more, take it over: --adopt {other}"
    )


def command(space: str, owner: Owner) -> str:
    """What notes by hand that a namespace is this cluster's."""
    key = PREFIX + owner.id
    return f"pulsar-admin namespaces set-property -k {key} -v {owner.name} {space}"


async def note(
    admin: Admin, space: str, owner: Owner, policies: Mapping[str, Any]
) -> None:
    """Note in a namespace that it is this cluster's; `public/default` stays as it is.

    Args:
        admin: The admin REST.
        space: The namespace.
        owner: The cluster.
        policies: Those of the namespace; nothing in them keeps it from being taken.

    Raises:
        LogForeignError: Another cluster was first.
        PulsarUnfitError: We may not; says the command for who may.
        LogUnavailableError: The admin REST does not answer.
    """
    found = owners(policies)
    if found.keys() == {owner.id}:
        return
    if space == PUBLIC:
        _log.warning(
            "another cluster can take this namespace for its own: it is Pulsar's "
            "default one, which is left as it is",
            namespace=space,
            way_out=f"a namespace of its own, or {command(space, owner)}",
        )
        return
    try:
        await _claim(admin, space, owner)
        for wait_s in SHOWN_S:
            for other in found.keys() - {owner.id}:
                await admin.remove_property(space, PREFIX + other)
                _log.warning("namespace adopted", namespace=space, cluster_id=other)
            await admin.set_property(space, PREFIX + owner.id, owner.name)
            found = owners(await admin.policies(space) or {})
            if found.keys() == {owner.id}:
                return
            await asyncio.sleep(wait_s)
    except NotPermittedError as error:
        raise PulsarUnfitError(
            f"namespace {space} of Pulsar does not say whose it is; set: "
            f"{command(space, owner)}"
        ) from error
    # The claim holds, and the next start notes it.
    _log.warning("namespace does not show whose it is", namespace=space)


async def _claim(admin: Admin, space: str, owner: Owner) -> None:
    """Be the cluster that a namespace is of, which only one of all can become.

    Each claim is a topic that says who made it, and the last one holds. Who adopts
    the namespace makes the next.
    """
    tenant, _, namespace = space.partition("/")
    held: dict[str, str] = {}
    for number in itertools.count():
        topic = PulsarName(tenant, namespace, f"{CLAIM}{number}")
        found = await admin.metadata(topic)
        if found is None and held.keys() <= {owner.adopts}:
            if await admin.claim(topic, {PREFIX + owner.id: owner.name}):
                return
            found = await _first(admin, topic)
        if found is None:
            break
        held = owners({"properties": found.properties})
    for other, name in held.items():
        if other != owner.id:
            raise LogForeignError(_foreign(owner, space, other, name))


async def _first(admin: Admin, topic: PulsarName) -> TopicMetadata:
    """Who was first to claim; brokers answer from a cache for a moment."""
    for wait_s in SHOWN_S:
        found = await admin.metadata(topic)
        if found is not None:
            return found
        await asyncio.sleep(wait_s)
    raise LogUnavailableError(
        f"Pulsar has a topic {topic.partition(0)}, and does not show within "
        f"{sum(SHOWN_S):g} s whose it is; delete it where it is left of a deletion"
    )
