"""Who has signed in to the page: kept in memory, until they sign out or stay away.

A user proves who it is with each request anew, by what it signed in with: who is
removed or disabled sees nothing from then on, however long the session is.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from ropeway.acl import api
from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.http.attempts import Attempts
from ropeway.gateway.http.params import RefusedError
from ropeway.gateway.node.client_owners import is_same
from ropeway.gateway.wire.codes import ROPEWAY_VERSION
from ropeway.gateway.wire.request_credentials import signed_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Guard, Principal, Source
    from ropeway.acl.audit_api import Auditor
    from ropeway.gateway.http.on_behalf import OnBehalf
    from ropeway.gateway.http.state import State

IDLE_S = 1800.0
"""A user who has not looked for so long signs in again."""
MOST_OF_ONE = 10
"""Sessions of one principal: of more, its own that has not looked for longest ends."""
MOST = 200
"""Sessions in all; each looks at the cluster now and then. Who comes then is told to
come later: nobody's sign-in ends another's."""
SIGN_IN = "SIGN_IN"
"""What the audit log says for a request."""
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
        audit: Where sign-ins are written.
        begin: Makes what a user's requests are answered with.
        clock_s: Seconds that only go forward.
    """

    def __init__(
        self,
        guard: Guard,
        audit: Auditor,
        begin: Callable[[Source, Principal | None], State],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = guard
        self._audit = audit
        self._begin = begin
        self._clock_s = clock_s
        self._attempts = Attempts(clock_s)
        self._open: OrderedDict[str, Session] = OrderedDict()
        """By their tokens; who looked last is last."""

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, credentials: Credentials, source: Source) -> str:
        """Let somebody in; the token is the only proof of it.

        Raises:
            RefusedError: Nobody has these credentials, there were too many wrong ones,
                or too many others are in.
        """
        principal = await self.prove(credentials, source)
        try:
            await self._make_room(principal)
        except RefusedError as error:
            self._refuse(SIGN_IN, credentials, source, error)
            raise
        state = self._begin(source, principal)
        assert state.user is not None, "a user's state has its user"
        await state.console.start()
        state.history.start()
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        until_s = self._clock_s() + IDLE_S
        self._open[token] = Session(credentials, state.user, state, until_s)
        self._tell("signed in", state.user)
        return token

    def _refuse(
        self,
        request: str,
        credentials: Credentials,
        source: Source,
        error: RefusedError,
    ) -> None:
        """Write what the guard was not asked about."""
        self._audit.attempt(
            "refused",
            request=request,
            claimed=credentials.access_key,
            address=source.address,
            channel=source.channel.value,
            reason=error.sentence,
        )

    def _tell(self, event: str, user: OnBehalf, reason: str = "") -> None:
        self._audit.attempt(
            event,
            request=SIGN_IN,
            principal=str(user.principal or ""),
            address=user.source.address,
            channel=user.source.channel.value,
            reason=reason,
        )

    async def prove(
        self, credentials: Credentials, source: Source, request: str = SIGN_IN
    ) -> Principal | None:
        """`identify` whoever may be guessing; `request` is for the audit log.

        Raises:
            RefusedError: Nobody has these credentials, or there were too many wrong
                ones.
        """
        given = credentials.access_key, source.address
        try:
            self._attempts.begin(*given)
        except RefusedError as error:
            self._refuse(request, credentials, source, error)
            raise
        principal = await self.identify(credentials, source, request)
        self._attempts.succeed(*given)
        return principal

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
            await self.close(token, "rules have changed")
            raise
        session.user.source = source
        until_s = self._clock_s() + IDLE_S
        self._open[token] = session._replace(until_s=until_s)
        self._open.move_to_end(token)
        return session.state

    async def judge(self) -> None:
        """Sign those out who are no longer who they were; rules have changed."""
        for token, session in list(self._open.items()):
            try:
                await self.identify(session.credentials, session.user.source)
            except RefusedError:
                await self.close(token, "rules have changed")

    async def identify(
        self, credentials: Credentials, source: Source, request: str = "SESSION"
    ) -> Principal | None:
        """Say who somebody is; None where nobody knows, in a dry run.

        Raises:
            RefusedError: Nobody has these credentials.
        """
        proof = _proof(credentials)
        verdict = await self._guard.identify(proof, source, request)
        if not verdict.allowed:
            raise RefusedError(verdict.remark, 401)
        return verdict.principal

    async def close(self, token: str, reason: str = "") -> None:
        """Sign somebody out, if it was signed in; who did not ask for it: why."""
        session = self._open.pop(token, None)
        if session is not None:
            self._tell("signed out", session.user, reason)
            await session.state.history.close()
            await session.state.console.close()

    async def close_all(self) -> None:
        """Sign everybody out."""
        for token in list(self._open):
            await self.close(token, "the node ends")

    async def _close_old(self) -> None:
        now_s = self._clock_s()
        for token, session in list(self._open.items()):
            if session.until_s > now_s:
                break
            await self.close(token, "idle")

    async def _make_room(self, principal: Principal | None) -> None:
        """End sessions that are over, and the principal's oldest where it has many.

        Raises:
            RefusedError: There are too many of others.
        """
        await self._close_old()
        own = [
            token
            for token, one in self._open.items()
            if is_same(one.user.principal, principal)
        ]
        for token in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            await self.close(token, "too many sessions of one principal")
        if len(self._open) >= MOST:
            raise RefusedError(
                f"{MOST} sessions are open; allowed: {MOST}. Try again later", 503
            )


def _proof(credentials: Credentials) -> api.Credentials:
    """Credentials as a client's request carries them that has nothing else in it."""
    fields = signed({}, b"", credentials)
    return api.Credentials(
        access_key=credentials.access_key,
        signature=fields["Signature"],
        security_token=credentials.security_token or "",
        signed=signed_values(fields, ROPEWAY_VERSION),
    )


SESSIONS: web.AppKey[Sessions] = web.AppKey("sessions")
