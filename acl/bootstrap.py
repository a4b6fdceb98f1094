"""The first users of ACL 2.0: a superuser of the configuration, and those of ACL 1.0.

Who is there already is left as it is, so that this may happen at each start.

Source: AuthMigrator and AuthenticationMetadataManagerImpl.initUser, RocketMQ 5.5.0.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from ropeway.acl.administration import (
    Rule,
    Rules,
    RulesError,
    User,
    UserExistsError,
)
from ropeway.acl.api import HookError
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.administration import Administration
    from ropeway.acl.api import Setting
    from ropeway.acl.audit_api import Auditor
    from ropeway.acl.plain_file import Account, PlainRules

log = structlog.get_logger(__name__)

PASSWORD_VARIABLE = "ROPEWAY_SUPERUSER_PASSWORD"  # noqa: S105 - a variable's name


async def bootstrap(setting: Setting, administration: Administration) -> None:
    """Make the users that a hook's options ask for.

    Raises:
        HookError: The options cannot be used.
        StoreError: The users cannot be kept.
    """
    name = setting.options.get("superuser")
    if name is not None:
        if str(name) not in administration.users():
            user = User(str(name), _password(setting), super=True)
            await _create(administration, user, setting.audit)
    elif not any(one.super for one in administration.users().values()):
        log.warning(
            "there is no superuser, and nobody may make one",
            hook=setting.name,
            advice="set superuser in the hook's options",
        )
    if (path := setting.options.get("migrate_from")) is not None:
        await migrate(str(path), administration, setting.audit)


def _password(setting: Setting) -> str:
    path = setting.options.get("superuser_password_file")
    if path is not None:
        try:
            return Path(str(path)).expanduser().read_text("utf-8").strip()
        except OSError as error:
            raise HookError(f"cannot read {path}: {reason_of(error)}") from error
        except UnicodeDecodeError as error:
            raise HookError(f"cannot read {path}: it is not UTF-8") from error
    if password := setting.environment.get(PASSWORD_VARIABLE):
        return password
    raise HookError(
        f"{setting.name}: superuser has no password; superuser_password_file names a "
        f"file with it, or {PASSWORD_VARIABLE} has it"
    )


async def _create(administration: Administration, user: User, audit: Auditor) -> None:
    try:
        await administration.create_user(user)
    except UserExistsError as error:
        if user.name not in administration.users():
            raise HookError(
                f"user {user.name} is kept and cannot be read, as its password was "
                "encrypted with another key: add that key to acl.key_file, or name "
                "another superuser, which can delete this user"
            ) from error
        # Another node was first.
    except RulesError as error:
        raise HookError(str(error)) from error
    else:
        made = {"super": user.super, "enabled": user.enabled, "password": "***"}
        audit.change("ACCESS_BOOTSTRAP", None, None, f"User:{user.name}", None, made)


async def migrate(path: str, administration: Administration, audit: Auditor) -> None:
    """Make a user with rules of every account of a plain_acl.yml.

    White addresses have no counterpart: who relied on them has to sign from now on.

    Raises:
        HookError: The file cannot be used.
        StoreError: The users cannot be kept.
    """
    given = await asyncio.to_thread(_read, path)
    made = []
    for account in given.accounts.values():
        if account.name in administration.users():
            continue
        await _create(
            administration,
            User(account.name, account.secret.decode(), super=account.admin),
            audit,
        )
        try:
            await administration.add_rules(rules := rules_of(account))
            subject, states = f"Acl:{rules.subject}", (None, rules.shown())
            audit.change("ACCESS_BOOTSTRAP", None, None, subject, *states)
        except RulesError as error:
            log.error(  # noqa: TRY400 - the reason says it all
                "an account may do nothing: its rules were not migrated",
                account=account.name,
                reason=str(error),
            )
        made.append(account.name)
    log.info("accounts were migrated", file=path, users=made)


def _read(path: str) -> PlainRules:
    # Only who migrates needs a reader of YAML.
    from ropeway.acl.plain_file import RuleFileError, read  # noqa: PLC0415

    try:
        return read(Path(path).expanduser())
    except RuleFileError as error:
        raise HookError(str(error)) from error


def rules_of(account: Account) -> Rules:
    """What an account of ACL 1.0 may do, as rules of ACL 2.0."""
    custom = (
        *(_rule(f"Topic:{name}", one) for name, one in account.topics.items()),
        *(_rule(f"Group:{name}", one) for name, one in account.groups.items()),
    )
    default = (
        _rule("Topic:*", account.default_topic),
        _rule("Group:*", account.default_group),
    )
    return Rules(f"User:{account.name}", custom, default)


def _rule(resource: str, permission: int) -> Rule:
    actions = tuple(_actions(permission))
    if not actions:
        return Rule(resource, ("All",), allowed=False)
    return Rule(resource, actions, allowed=True)


def _actions(permission: int) -> Iterator[str]:
    for bit, name in ((1, "Pub"), (2, "Sub")):
        if permission & bit:
            yield name
    if permission:
        # Who might send or receive might look.
        yield from ("Get", "List")
