"""Access control as a configuration has it: hooks found, opened, and put in a chain.

The only file that knows what stands behind `acl.api`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.acl.api import (
    Action,
    Decision,
    Hook,
    HookError,
    ResourceKind,
    Setting,
    VaultError,
)
from ropeway.acl.audit import Audit
from ropeway.acl.chain import Chain
from ropeway.common.clock import now_ms
from ropeway.common.eager import settled
from ropeway.common.reasons import reason_of
from ropeway.gateway import on_pulsar
from ropeway.gateway.config import ConfigError, read_named
from ropeway.gateway.extras import load_plugin, needing
from ropeway.gateway.node import names
from ropeway.gateway.node.node_auth import new_secret
from ropeway.gateway.rules import RouteRules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack, ExitStack

    from ropeway.acl.api import Guard, Need, Open, Principal, Source, Vault
    from ropeway.acl.audit_api import Auditor
    from ropeway.gateway.config import AclConfig, Config
    from ropeway.routing.api import RouteStore

GROUP = "ropeway.acl"
"""The entry points that hooks are found among."""
KEY_VARIABLE = "ROPEWAY_ACL_KEY"
SECRET_VARIABLE = "ROPEWAY_CLUSTER_SECRET"  # noqa: S105 - a variable's name
_SECRET_KEY = "cluster_secret"  # noqa: S105 - a setting's name
_MIN_SECRET = 16


def open_audit(config: Config, stack: AsyncExitStack | ExitStack) -> Auditor:
    """Open the audit log of a configuration; the stack closes it.

    Raises:
        ConfigError: Its file cannot be written.
    """
    given = config.audit
    try:
        audit = Audit(
            given.per_minute,
            time.monotonic,
            now_ms,
            given.file,
            given.changes_per_minute,
        )
    except OSError as error:
        raise ConfigError(
            f"audit.file: cannot write {given.file}: {reason_of(error)}"
        ) from error
    stack.callback(audit.close)
    return audit


async def open_guard(
    config: Config,
    routes: RouteStore,
    audit: Auditor,
    stack: AsyncExitStack,
    environment: Mapping[str, str],
) -> Guard | None:
    """Open the access control of a configuration; None where it has none.

    Raises:
        ConfigError: A hook is not there, or cannot use its options.
    """
    given = config.acl
    if given is None:
        return None
    _check_names(given)
    vault = _vault(given, environment)
    pulsar = on_pulsar.open_admin(config)
    if pulsar is not None:
        stack.push_async_callback(pulsar.close)
    chain = Chain(audit, time.monotonic, dry_run=given.dry_run)
    # Hooks that were opened are closed, also where the next one cannot be.
    stack.push_async_callback(chain.close)
    chain.add("system", Hook(authorizer=SystemTopics(config.cluster)))
    for name in given.hooks:
        setting = Setting(
            name=name,
            options=given.options.get(name, {}),
            cluster=config.cluster,
            store=RouteRules(routes, name),
            vault=vault,
            changed=chain.forget,
            environment=environment,
            audit=audit,
            pulsar=pulsar,
        )
        chain.add(name, await _open(name, setting))
    return chain


class SystemTopics:
    """Keeps system topics and groups for superusers, before any hook is asked.

    They hold what other topics do: rules for those would say nothing otherwise. What
    clients send to a system topic of their own, as traces and replies, is for the rules
    to allow. Likewise names that only offsets are kept under, as `lite:GROUP`: by rules
    for `Group:*` or `Group:l*` those would be a second name of every group.

    Args:
        cluster: Its name, which its reply topic begins with.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def authorize(
        self,
        principal: Principal,  # noqa: ARG002
        need: Need,
        source: Source,  # noqa: ARG002
    ) -> Decision | None:
        """Deny, or have no opinion; superusers are not judged."""
        kind, name = need.resource.kind, need.resource.name
        if kind is ResourceKind.GROUP:
            reserved = names.is_system_group(name)
        else:
            reserved = (
                kind is ResourceKind.TOPIC
                and (
                    names.is_for_superusers(name, self._cluster)
                    or names.is_inner_topic(name)
                )
                and not (
                    Action.PUB in need.actions
                    and names.takes_from_clients(name, self._cluster)
                )
            )
        return _FOR_SUPERUSERS if reserved else None


_FOR_SUPERUSERS = Decision(allowed=False, rule="system topics are for superusers")


def _check_names(given: AclConfig) -> None:
    if unknown := given.options.keys() - set(given.hooks):
        raise ConfigError(
            f"acl.options has {sorted(unknown)}; allowed: {', '.join(given.hooks)}, "
            "the names in acl.hooks"
        )
    if len(set(given.hooks)) != len(given.hooks):
        raise ConfigError("acl.hooks names one twice; allowed: each once")


async def _open(name: str, setting: Setting) -> Hook:
    try:
        opening: Open = load_plugin(GROUP, name, "acl.hooks")
        return await settled(opening(setting))
    except HookError as error:
        raise ConfigError(f"acl: {error}") from error


def _vault(given: AclConfig, environment: Mapping[str, str]) -> Vault:
    text = environment.get(KEY_VARIABLE, "")
    if given.key_file is not None:
        text = read_named(given.key_file, "acl.key_file")
    try:
        with needing("acl"):
            from ropeway.acl.vault import (  # noqa: PLC0415 - of the extra `acl`
                FernetVault,
                NoVault,
            )

            return FernetVault(text.split()) if text.strip() else NoVault()
    except VaultError as error:
        raise ConfigError(f"acl.key_file: {error}") from error


async def cluster_secret(
    config: Config, routes: RouteStore, environment: Mapping[str, str]
) -> str:
    """The secret that nodes prove with that they are of one cluster.

    Raises:
        ConfigError: The one that is configured cannot be used.
        RouteError: None is, and none can be kept.
    """
    secret = environment.get(SECRET_VARIABLE, "").strip()
    if config.cluster_secret_file is not None:
        secret = read_named(config.cluster_secret_file, "cluster_secret_file")
    if secret:
        if len(secret) < _MIN_SECRET:
            raise ConfigError(
                f"cluster_secret_file: {len(secret)} characters; allowed: "
                f"{_MIN_SECRET} or more"
            )
        return secret
    made = new_secret()
    place = names.ACCESS_NAMESPACES, _SECRET_KEY
    await routes.change_setting(*place, lambda old: old or made)
    return routes.settings[place]
