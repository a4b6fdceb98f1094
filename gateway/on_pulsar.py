"""What a configuration says of the log on Pulsar: its namespace, and whose that is."""

from __future__ import annotations

import re
import secrets
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.common.reasons import reason_of
from ropeway.gateway.config import ConfigError
from ropeway.gateway.extras import package
from ropeway.gateway.node import deletions, names, namespaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from ropeway.gateway.config import Config
    from ropeway.gateway.pulsar_config import OAuth2Config, PulsarConfig
    from ropeway.routing.api import RouteStore, Topic
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.diagnosis import Finding
    from ropeway.storage.pulsar.leftovers import Routed
    from ropeway.storage.pulsar.oauth2 import OAuth2Settings
    from ropeway.storage.pulsar.offload import Offloading
    from ropeway.storage.pulsar.owner import Owner
    from ropeway.storage.pulsar.pulsar_id import PulsarIds
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings

log = structlog.get_logger(__name__)

ASK_S = 5.0
"""Access control waits for an answer of each host: less than the 15 s that Java clients
connect for."""
_ID = names.ACCESS_NAMESPACES, "cluster_id"
"""The setting of the route store that says which cluster this is."""
_PULSAR_ID = names.ACCESS_NAMESPACES, "pulsar_id"
"""Which Pulsar cluster has the messages."""
_NEXT_PULSAR_ID = names.ACCESS_NAMESPACES, "next_pulsar_id"
"""For the one that is used next; all nodes that come at once find the same."""
_ID_BYTES = 8
_legal = re.compile(r"[-=:.\w]+", re.ASCII).fullmatch
"""Source: NamedEntity.java, Pulsar 4.0.8."""


def settings(config: Config, given: PulsarConfig) -> PulsarLogSettings:
    """The settings of the log.

    Raises:
        ConfigError: There are none, or they cannot be used.
    """
    tenant, namespace = namespaces.own(config)
    for name, part in (("tenant", tenant), ("namespace", namespace)):
        if not _legal(part):
            raise ConfigError(
                f"pulsar.{name} is {part!r}; allowed: letters, digits and _ - = : ."
                + ("; it is the cluster's name unless it is given" * (part != tenant))
            )
    made: PulsarLogSettings
    try:
        made = package("ropeway.storage.pulsar", "pulsar").PulsarLogSettings(
            service_url=given.service_url,
            admin_url=given.admin_url,
            listener_name=given.listener_name,
            keep_alive_ms=given.keep_alive_ms,
            tls_ca_file=_named(given.ca_certificate),
            certificate=_named(given.certificate),
            key=_named(given.key),
            token_file=_named(given.token_file),
            user=given.user,
            password_file=_named(given.password_file),
            oauth2=_oauth2(given.oauth2),
            tenant=tenant,
            namespace=namespace,
            namespaces=given.namespaces,
            tail_bytes=config.log.tail_cache_bytes,
            waiting_bytes=config.limits.waiting_bytes,
        )
    except ValueError as error:
        raise ConfigError(f"pulsar: {error}") from error
    return made


def _oauth2(given: OAuth2Config | None) -> OAuth2Settings | None:
    if given is None:
        return None
    made: OAuth2Settings = package(
        "ropeway.storage.pulsar.oauth2", "pulsar"
    ).OAuth2Settings(
        issuer_url=given.issuer_url,
        credentials_file=str(given.credentials_file),
        audience=given.audience,
        scope=given.scope,
        tls_ca_file=_named(given.ca_certificate),
    )
    return made


def _named(path: Path | None) -> str | None:
    return None if path is None else str(path)


async def owner(config: Config, routes: RouteStore) -> Owner:
    """Which cluster this is; its id is made and kept with the routes at first.

    Raises:
        RouteError: The id cannot be kept.
    """
    made, following = (secrets.token_hex(_ID_BYTES) for _ in range(2))
    await routes.change_setting(*_ID, lambda old: old or made)
    used = routes.settings.get(_PULSAR_ID)
    await routes.change_setting(
        *_NEXT_PULSAR_ID, lambda old: old if old and old != used else following
    )
    return _owner(config, routes, routes.settings[_ID])


async def keep_pulsar_id(routes: RouteStore, pulsar_id: str | None) -> None:
    """Keep with the routes which Pulsar cluster has the messages; None: not known.

    Raises:
        RouteError: It cannot be kept.
    """
    if pulsar_id is not None and routes.settings.get(_PULSAR_ID) != pulsar_id:
        await routes.put_setting(*_PULSAR_ID, pulsar_id)


def known_owner(config: Config, routes: RouteStore) -> Owner | None:
    """Which cluster this is; None where no node of it was ever started."""
    known = routes.settings.get(_ID)
    return None if known is None else _owner(config, routes, known)


def _owner(config: Config, routes: RouteStore, cluster_id: str) -> Owner:
    assert config.pulsar is not None
    made: Owner = package("ropeway.storage.pulsar", "pulsar").Owner(
        cluster_id,
        config.cluster,
        frozenset(
            name for name, topic in routes.topics.items() if any(topic.route.values())
        ),
        config.pulsar.adopt,
        pulsar_ids=_pulsar_ids(config, routes),
    )
    return made


def _pulsar_ids(config: Config, routes: RouteStore) -> PulsarIds:
    made: PulsarIds = package("ropeway.storage.pulsar.pulsar_id", "pulsar").PulsarIds(
        routes.settings.get(_PULSAR_ID),
        routes.settings.get(_NEXT_PULSAR_ID, ""),
        tuple(
            f"{node.node} of {broker}"
            for broker, nodes in routes.brokers.items()
            for node in nodes
            if (broker, node.node) != (config.broker, config.node)
        ),
    )
    return made


def expected(routes: RouteStore) -> list[Routed]:
    """What routes say that Pulsar has."""
    module = package("ropeway.storage.pulsar.leftovers", "pulsar")
    topics: list[Routed] = []
    for topic in (*routes.topics.values(), *routes.deleted.values()):
        live: dict[int, frozenset[int]] = {}
        for broker, numbers in topic.route.items():
            generation = topic.generations.get(broker, 0)
            live[generation] = live.get(generation, frozenset()).union(numbers)
        topics.append(module.Routed(topic.name, live, topic.generation))
    return topics


async def find_generations(routes: RouteStore, found: Mapping[str, int]) -> None:
    """Have topics that routes know nothing of begin with what Pulsar has of them.

    Where routes were lost, a topic that had been made again would be empty otherwise.

    Args:
        routes: Of the cluster that the namespaces are of.
        found: The newest generation of each topic in Pulsar, where it is not 0.

    Raises:
        RouteError: It cannot be kept.
    """
    lowest = deletions.first(routes)
    for name, generation in found.items():
        if generation > lowest and not (
            name in routes.topics or name in routes.deleted
        ):
            unmade = deletions.unmade(name, generation)
            await routes.change_topic(name, partial(_known_or, unmade))
            log.warning("topic of lost routes found", topic=name, generation=generation)


def _known_or(new: Topic, old: Topic | None) -> Topic:
    return old or new


async def examine(
    config: Config,
    owner: Owner | None,
    expected: Sequence[Routed] | None = None,
    *,
    fix: bool = False,
) -> list[Finding]:
    """See whether a node could start on Pulsar, as this machine reaches it.

    Args:
        config: The node's; with Pulsar.
        owner: The cluster that it is of; None where no node of it was ever started.
        expected: What its routes say; None where they were not read.
        fix: Whether to mend what does not fit them.

    Raises:
        ConfigError: A setting cannot be used.
        OSError: A certificate cannot be read.
    """
    assert config.pulsar is not None
    module = package("ropeway.storage.pulsar.diagnosis", "pulsar")
    found: list[Finding] = await module.examine(
        settings(config, config.pulsar),
        owner,
        expected,
        prepare=config.pulsar.prepare,
        fix=fix,
    )
    return found


def open_admin(config: Config) -> Admin | None:
    """Be ready to ask Pulsar's admin REST as the log does; None for another log.

    Whoever opens it closes it.

    Raises:
        ConfigError: A setting cannot be used.
    """
    if config.pulsar is None:
        return None
    module = package("ropeway.storage.pulsar.cluster", "pulsar")
    try:
        made: Admin = module.open_admin(settings(config, config.pulsar), ASK_S)
    except OSError as error:
        raise ConfigError(f"pulsar: {reason_of(error)}") from error
    return made


def open_offloading(config: Config) -> AbstractAsyncContextManager[Offloading]:
    """Look after what Pulsar offloads by itself.

    Raises:
        ConfigError: The log of that configuration is not on Pulsar.
    """
    if config.pulsar is None:
        raise ConfigError("no [pulsar] is given; an embedded log has [tier] instead")
    module = package("ropeway.storage.pulsar.offload", "pulsar")
    found: AbstractAsyncContextManager[Offloading] = module.open_offloading(
        settings(config, config.pulsar)
    )
    return found
