"""One call: who makes it, what is asked of whom, and how methods are registered.

Source: HeaderInterceptor.java and ContextInitPipeline.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ropeway.acl.api import Credentials
from ropeway.gateway.grpc.caller import Caller
from ropeway.gateway.grpc.credentials import claim_of
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire.codes import Language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.acl.api import Need
    from ropeway.gateway.grpc.caller import Origin
    from ropeway.gateway.grpc.messaging_service import Messaging
    from ropeway.gateway.grpc.sessions import Session
    from ropeway.gateway.node.fair_queueing import Slices
    from ropeway.gateway.node.node import Node

F = TypeVar("F", bound="Callable[..., Any]")
C = TypeVar("C", bound=Caller)

_CLIENT_ID = "x-mq-client-id"
_LANGUAGE = "x-mq-language"
_MAX_CLIENT_ID = 255
_LANGUAGES = {
    **{language.name: language.name for language in Language},
    "GOLANG": Language.GO.name,
    "DOT_NET": Language.DOTNET.name,
    # What the Python client calls itself.
    "GRPC_V2": Language.PYTHON.name,
}

METHODS: dict[str, Callable[..., Any]] = {}
"""What works on each method of the service, by its name."""


def rpc(name: str) -> Callable[[F], F]:
    """Make a function the one that works on a method.

    It is given the request and the `Call`. One that answers once is a coroutine
    function; one that answers with a stream is an asynchronous generator.
    """

    def register(function: F) -> F:
        if name in METHODS:
            raise ValueError(f"{name} is worked on by two functions")
        METHODS[name] = function
        return function

    return register


class Call:
    """What a method may use.

    Args:
        messaging: What outlives the call.
        origin: The client's connection.
        metadata: What came with the call.
        remaining_s: Time until the client gives up; None: it has no deadline.

    Raises:
        RefusedError: The metadata do not say who calls.
    """

    __slots__ = (
        "_method",
        "_said",
        "caller",
        "client_id",
        "messaging",
        "node",
        "origin",
        "remaining_s",
    )

    def __init__(
        self,
        messaging: Messaging,
        origin: Origin,
        metadata: Iterable[tuple[str, str | bytes]],
        remaining_s: float | None,
    ) -> None:
        self._said = said = dict(metadata)
        self._method = ""
        self.messaging = messaging
        self.node: Node = messaging.node
        self.origin = origin
        self.client_id = _client_id(said.get(_CLIENT_ID))
        language = _LANGUAGES.get(str(said.get(_LANGUAGE)), Language.OTHER.name)
        self.caller = Caller(self.node, origin, language)
        self.remaining_s = remaining_s

    async def identify(self, method: str) -> None:
        """Find out who calls, where access control is on.

        Args:
            method: What is called, for the audit log.

        Raises:
            RefusedError: Nobody knows the client, or it cannot be read who it is.
        """
        self._method = method
        guard = self.node.guard
        if guard is None:
            return
        verdict = await guard.identify(self._credentials(), self.origin.source, method)
        if not verdict.allowed:
            raise RefusedError(Code.UNAUTHORIZED, verdict.remark)
        if not self.origin.known:
            self.origin.become_known(verdict.principal)
        self.caller.principal = principal = verdict.principal
        share = self.origin.share
        if share is not None and principal is not None and not share.is_of(principal):
            raise RefusedError(
                Code.TOO_MANY_REQUESTS,
                f"{principal.name:.128} has as many connections as its quota allows; "
                "close one of them",
            )

    def _credentials(self) -> Credentials:
        claim = claim_of(self._said)
        if claim is None:
            return Credentials()
        return Credentials(
            claim.access_key,
            claim.signature,
            claim.security_token,
            signed=claim.content,
        )

    async def require(self, *needs: Need) -> None:
        """Refuse the call unless who makes it may do all this.

        For what no processor asks.

        Raises:
            RefusedError: They may not.
        """
        guard = self.node.guard
        if guard is None:
            return
        verdict = await guard.permit(
            self.caller.principal, needs, self.origin.source, self._method
        )
        if not verdict.allowed:
            raise RefusedError(Code.FORBIDDEN, verdict.remark)

    def slices(self) -> Slices:
        """What work that takes long is done in."""
        return self.node.turns.slices(
            self.caller.principal or self.origin.source.address
        )

    def another(self, kind: type[C]) -> C:
        """One more caller, for what may have to be given up by itself."""
        caller = self.caller
        return kind(self.node, self.origin, caller.language, caller.principal)

    def session(self) -> Session:
        """What the client said of itself.

        Raises:
            RefusedError: It did not.
        """
        session = self.messaging.sessions.find(
            self.client_id, self.origin.address, self.caller.principal
        )
        if session is None:
            raise RefusedError(
                Code.UNRECOGNIZED_CLIENT_TYPE,
                f"client {self.client_id} has sent no settings; allowed: Telemetry "
                "with settings first",
            )
        return session


def _client_id(value: str | bytes | None) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RefusedError(
            Code.CLIENT_ID_REQUIRED, f"the metadata have no {_CLIENT_ID}"
        )
    if len(value) > _MAX_CLIENT_ID:
        raise RefusedError(
            Code.BAD_REQUEST,
            f"{_CLIENT_ID} of {len(value)} characters; allowed: {_MAX_CLIENT_ID}",
        )
    return value
