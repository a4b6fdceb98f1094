"""Who has signed in to the page: kept in memory, until they sign out or stay away.

A user proves who it is with each request anew, by what it signed in with: who is
removed or disabled sees nothing from then on, however long the session is.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from acl import api
from gateway.http.params import RefusedError
from gateway.wire.codes import ROPEWAY_VERSION
from gateway.wire.signing import signed_values
from ropeway.client.credentials import Credentials, signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from acl.api import Guard, Principal, Source
    from gateway.http.on_behalf import OnBehalf
    from gateway.http.state import State

IDLE_S = 1800.0
"""A user who has not looked for so long signs in again."""
MOST = 100
"""Of more, the one who has not looked for longest signs in again."""
_TOKEN_BYTES = 32


class Session(NamedTuple):
    """Somebody who has signed in."""

    credentials: Credentials
    user: OnBehalf
    state: State
    until_s: float


class Sessions:
    """All who have signed in to one node's page.

    Args:
        guard: Says who somebody is.
        begin: Makes what a user's requests are answered with.
        clock_s: Seconds that only go forward.
    """

    def __init__(
        self,
        guard: Guard,
        begin: Callable[[Source, Principal | None], State],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = guard
        self._begin = begin
        self._clock_s = clock_s
        self._open: OrderedDict[str, Session] = OrderedDict()
        """By their tokens; who looked last is last."""

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, credentials: Credentials, source: Source) -> str:
        """Let somebody in; the token is the only proof of it.

        Raises:
            RefusedError: Nobody has these credentials.
        """
        principal = await self.identify(credentials, source)
        state = self._begin(source, principal)
        assert state.user is not None, "a user's state has its user"
        await state.console.start()
        state.history.start()
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        until_s = self._clock_s() + IDLE_S
        self._open[token] = Session(credentials, state.user, state, until_s)
        await self._close_old()
        return token

    async def find(self, token: str, source: Source) -> State | None:
        """What a user's requests are answered with; None where nobody has the token.

        Raises:
            RefusedError: The user is no longer who it was.
        """
        await self._close_old()
        session = self._open.get(token)
        if session is None:
            return None
        try:
            session.user.principal = await self.identify(session.credentials, source)
        except RefusedError:
            await self.close(token)
            raise
        session.user.source = source
        until_s = self._clock_s() + IDLE_S
        self._open[token] = session._replace(until_s=until_s)
        self._open.move_to_end(token)
        return session.state

    async def identify(
        self, credentials: Credentials, source: Source
    ) -> Principal | None:
        """Say who somebody is; None where nobody knows, in a dry run.

        Raises:
            RefusedError: Nobody has these credentials.
        """
        found = self._guard.identify(_proof(credentials), source, "SIGN_IN")
        verdict = found if isinstance(found, api.Verdict) else await found
        if not verdict.allowed:
            raise RefusedError(verdict.remark, 401)
        return verdict.principal

    async def close(self, token: str) -> None:
        """Sign somebody out, if it was signed in."""
        session = self._open.pop(token, None)
        if session is not None:
            await session.state.history.close()
            await session.state.console.close()

    async def close_all(self) -> None:
        """Sign everybody out."""
        for token in list(self._open):
            await self.close(token)

    async def _close_old(self) -> None:
        now_s = self._clock_s()
        for token, session in list(self._open.items()):
            if session.until_s > now_s and len(self._open) <= MOST:
                break
            await self.close(token)


def _proof(credentials: Credentials) -> api.Credentials:
    """Credentials as a client's request carries them that has nothing else in it."""
    fields = signed({}, b"", credentials)
    return api.Credentials(
        access_key=credentials.access_key,
        signature=fields["Signature"],
        security_token=credentials.security_token or "",
        signed=signed_values(fields, ROPEWAY_VERSION),
    )
