"""Whose a namespace is: a cluster notes its id there, and refuses what is another's.

The note is a property of the namespace, `ropeway.cluster.ID`, whose value is the
cluster's name, for people. A cluster adds its own, waits until it sees that, and then
looks whether it is alone. That is no lock: Pulsar answers reads from caches, so of two
that come first and at the same moment both may go on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from storage.api import LogForeignError, LogLimitError, LogUnavailableError
from storage.pulsar import selftest
from storage.pulsar.admin import NotPermittedError
from storage.pulsar.selftest import PUBLIC, PulsarUnfitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.pulsar.admin import Admin
    from storage.pulsar.catalog import Catalog

PREFIX = "ropeway.cluster."
SEEN_S = 30.0
_LOOK_EVERY_S = 0.1
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
    """A namespace to take although it does not fit: of the cluster of that id, or
    `EMPTY`."""


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
) -> None:
    """Make the namespaces of a log fit to be its cluster's, and list their topics.

    Nothing is changed where they are another cluster's.

    Args:
        admin: The admin REST.
        catalog: Says which namespaces, and gets their topics.
        owner: The cluster that is to own them; None: nobody asks.
        prepare: As of `selftest.check`.

    Raises:
        LogForeignError: One is another cluster's, or lost all topics; says what to do.
        PulsarUnfitError: Something is missing.
        LogUnavailableError: The admin REST does not answer, or does not permit it.
    """
    policies = {space: await look(admin, space) for space in catalog.spaces}
    await catalog.load(space for space, found in policies.items() if found is not None)
    if owner is not None:
        for space, found in policies.items():
            for complaint in complaints(owner, space, found, catalog):
                raise LogForeignError(complaint)
    await selftest.check(admin, catalog.spaces, prepare=prepare)
    if owner is not None:
        for space in catalog.spaces:
            await note(admin, space, owner)
        if owner.adopts is not None:
            _log.warning("leave --adopt out from now on: it is for one start")


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
    owner: Owner, space: str, policies: Policies | None, catalog: Catalog
) -> list[str]:
    """Why a namespace cannot be a cluster's.

    Args:
        owner: The cluster.
        space: The namespace, as `tenant/namespace`.
        policies: Its policies; None where there is no such namespace.
        catalog: The topics that are there.
    """
    found = [
        _foreign(owner, space, other, name)
        for other, name in sorted(owners(policies or {}).items())
        if other not in (owner.id, owner.adopts)
    ]
    expected = [name for name in owner.topics if _is_in(name, space, catalog)]
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


def _foreign(owner: Owner, space: str, other: str, name: str) -> str:
    return (
        f"namespace {space} of Pulsar belongs to another cluster, {name} of the id "
        f"{other}; by its routes this one is {owner.name} of the id {owner.id}; set "
        "pulsar.namespace to one of its own, or `routes` to that cluster's; where that "
        f"cluster runs no more, take it over: --adopt {other}"
    )


def _is_in(topic: str, space: str, catalog: Catalog) -> bool:
    try:
        name = catalog.names.pulsar(topic)
    except LogLimitError:
        return False
    return f"{name.tenant}/{name.namespace}" == space


def command(space: str, owner: Owner) -> str:
    """What notes by hand that a namespace is this cluster's."""
    key = PREFIX + owner.id
    return f"pulsar-admin namespaces set-property -k {key} -v {owner.name} {space}"


async def _others(admin: Admin, space: str, owner: Owner) -> dict[str, str]:
    """Who else noted its id there, as of a moment after we did.

    Brokers answer from a cache for a moment, but one that has our note has all that
    came before it: properties are changed one after the other.
    """
    try:
        async with asyncio.timeout(SEEN_S):
            while True:
                found = owners(await admin.policies(space) or {})
                if found.pop(owner.id, None) is not None:
                    return found
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise LogUnavailableError(
            f"Pulsar does not show within {SEEN_S:g} s whose namespace {space} is"
        ) from None


async def note(admin: Admin, space: str, owner: Owner) -> None:
    """Note in a namespace that it is this cluster's; `public/default` stays as it is.

    Raises:
        LogForeignError: Another cluster did so at the same moment.
        PulsarUnfitError: We may not; says the command for who may.
        LogUnavailableError: The admin REST does not answer.
    """
    found = owners(await admin.policies(space) or {})
    if found.keys() == {owner.id}:
        return
    key = PREFIX + owner.id
    if space == PUBLIC:
        _log.warning(
            "another cluster can take this namespace for its own: it is Pulsar's "
            "default one, which is left as it is",
            namespace=space,
            way_out=f"a namespace of its own, or {command(space, owner)}",
        )
        return
    try:
        for other in found.keys() - {owner.id}:
            if other == owner.adopts:
                await admin.remove_property(space, PREFIX + other)
                _log.warning("namespace adopted", namespace=space, cluster_id=other)
        await admin.set_property(space, key, owner.name)
        others = await _others(admin, space, owner)
        if others:
            await admin.remove_property(space, key)
    except NotPermittedError as error:
        raise PulsarUnfitError(
            f"namespace {space} of Pulsar does not say whose it is; set: "
            f"{command(space, owner)}"
        ) from error
    for other, name in others.items():
        raise LogForeignError(_foreign(owner, space, other, name))
