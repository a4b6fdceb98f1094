"""The hook: tokens and permissions joined, and looked after while the server runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.acl.api import Hook, HookError
from ropeway.acl.pulsar.admin import Admin, AdminError
from ropeway.acl.pulsar.keys import read_key
from ropeway.acl.pulsar.options import ADMIN_URL, read_options
from ropeway.acl.pulsar.permissions import PulsarPermissions
from ropeway.acl.pulsar.token_rest import TokenRest
from ropeway.acl.pulsar.tokens import Tokens
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from ropeway.acl.api import Setting
    from ropeway.acl.pulsar.keys import Key
    from ropeway.acl.pulsar.options import Options

log = structlog.get_logger(__name__)

_EXPIRE_EVERY_S = 0.5
TOKEN_VARIABLE = "ROPEWAY_PULSAR_TOKEN"  # noqa: S105 - a variable's name
"""The same as for the log on Pulsar."""


async def open_hook(setting: Setting) -> Hook:
    """Make the hook of a configuration.

    Raises:
        HookError: An option or a key cannot be used.
    """
    options = read_options(
        setting.name, {"namespace": setting.cluster, **setting.options}
    )
    key = read_key(options, setting.environment)
    own = _own_rest(setting, options)
    rest = own or setting.pulsar
    assert rest is not None, "its own where the log has none"
    admin = Admin(rest)
    tokens = Tokens(setting.name, options, key, time.time)
    permissions = PulsarPermissions(options, admin, setting.changed, time.monotonic)
    upkeep = _Upkeep(setting, options, admin, tokens, permissions, key)
    await upkeep.look()
    loop = asyncio.get_running_loop()
    following = [loop.create_task(one) for one in (upkeep.run(), upkeep.expire())]

    async def close() -> None:
        for task in following:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await permissions.close()
        if own is not None:
            await own.close()

    return Hook(
        authenticator=tokens, authorizer=permissions, find=tokens.find, close=close
    )


def _own_rest(setting: Setting, options: Options) -> TokenRest | None:
    """What the options say of the admin REST; None where the log's settings count.

    Raises:
        HookError: The certificate cannot be used.
    """
    given = (options.admin_url, options.token_file, options.ca_certificate)
    if setting.pulsar is not None and given == (None, None, None):
        return None
    try:
        return TokenRest(
            options.admin_url or ADMIN_URL,
            options.token_file,
            setting.environment.get(TOKEN_VARIABLE),
            options.ca_certificate,
        )
    except OSError as error:
        raise HookError(
            f"{options.ca_certificate} cannot be used: {reason_of(error)}"
        ) from error


class _Upkeep:
    """Sees what has changed: keys, superusers and permissions."""

    def __init__(
        self,
        setting: Setting,
        options: Options,
        admin: Admin,
        tokens: Tokens,
        permissions: PulsarPermissions,
        key: Key,
    ) -> None:
        self._setting = setting
        self._options = options
        self._admin = admin
        self._tokens = tokens
        self._permissions = permissions
        self._key = key
        self._superusers: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(self._options.refresh_s)
            try:
                if await self.look():
                    self._setting.changed()
            except Exception:  # nobody would begin it again
                log.exception("keys and superusers not known anew")

    async def expire(self) -> None:
        """See which tokens end, so that nothing waits on with one that has ended."""
        while True:
            await asyncio.sleep(_EXPIRE_EVERY_S)
            try:
                if self._tokens.expire():
                    self._setting.changed()
            except Exception:  # nobody would begin it again
                log.exception("tokens that have ended are not known")

    async def look(self) -> bool:
        """Look once, and say whether who waits has to be judged again.

        What cannot be seen stays as it was.
        """
        try:
            self._key = read_key(self._options, self._setting.environment)
        except HookError as error:
            log.warning("new key not used, the old one stays", reason=str(error))
        try:
            self._superusers = await self._admin.superusers()
        except AdminError as error:
            log.warning("superusers not known anew", reason=str(error))
        is_new = self._tokens.use(self._key, self._superusers)
        await self._permissions.refresh()
        return is_new
