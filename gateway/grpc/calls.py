"""One call: as it came, and once it is known who makes it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ropeway.gateway.grpc.caller import Caller
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node.fair_queueing import Slices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.api import Credentials, Need
    from ropeway.gateway.budget import Budget
    from ropeway.gateway.grpc.caller import Origin
    from ropeway.gateway.grpc.renewals import Renewals
    from ropeway.gateway.grpc.sessions import Session, Sessions
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.node.node import Node


class Outliving(Protocol):
    """What outlives a call: the service of a node, as its methods use it."""

    node: Node
    sessions: Sessions
    renewals: Renewals
    budget: Budget


class Asked(NamedTuple):
    """A call as it came, before it is known who calls."""

    origin: Origin
    """The client's connection."""
    metadata: Mapping[str, str | bytes]
    """What came with the call."""
    deadline_s: float | None
    """When the client gives up, by the loop's clock; None: it does not."""


class Call(Caller):
    """One call: what its method may use, and who asks for it."""

    __slots__ = (
        "client_id",
        "credentials",
        "deadline_s",
        "flow",
        "messaging",
        "method",
        "rule_changes",
    )

    messaging: Outliving
    """What outlives the call."""
    method: str
    """What is called, for the audit log."""
    client_id: str
    """What the client calls itself."""
    credentials: Credentials | None
    """Whose call it says it is; None where nothing is guarded."""
    deadline_s: float | None
    """When the client gives up, by the loop's clock; None: it does not."""
    flow: Flow
    """Whose turns it shares."""
    rule_changes: int
    """How often rules of access had changed when the client was identified."""

    @property
    def remaining_ms(self) -> int | None:
        """Time until the client gives up; None: it does not."""
        if self.deadline_s is None:
            return None
        left_s = self.deadline_s - asyncio.get_running_loop().time()
        return max(0, int(left_s * 1000))

    async def authenticate(self) -> None:
        """Find out whose call it is, where access control is on.

        Raises:
            RefusedError: Nobody knows the client, or it cannot be read who it is.
        """
        guard, credentials = self.node.guard, self.credentials
        if guard is None or credentials is None:
            return
        self.rule_changes = self.node.reauthorization.changes
        verdict = await guard.identify(credentials, self.origin.source, self.method)
        if not verdict.allowed:
            raise RefusedError(Code.UNAUTHORIZED, verdict.remark)
        if not self.origin.known:
            self.origin.become_known(verdict.principal)
        self.principal = principal = verdict.principal
        share = self.origin.share
        if share is not None and principal is not None and not share.is_of(principal):
            raise RefusedError(
                Code.TOO_MANY_REQUESTS,
                f"{principal.name:.128} has as many connections as its quota allows; "
                "close one of them",
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
            self.principal, needs, self.origin.source, self.method
        )
        if not verdict.allowed:
            raise RefusedError(Code.FORBIDDEN, verdict.remark)

    def slices(self) -> Slices:
        """What work that takes long is done in."""
        return Slices(self.node.fair_queue, self.flow)

    def session(self) -> Session:
        """What the client said of itself.

        Raises:
            RefusedError: It did not.
        """
        session = self.messaging.sessions.find(
            self.client_id, self.origin.address, self.principal
        )
        if session is None:
            raise RefusedError(
                Code.UNRECOGNIZED_CLIENT_TYPE,
                f"client {self.client_id} has sent no settings; allowed: Telemetry "
                "with settings first",
            )
        return session
