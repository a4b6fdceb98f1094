"""The guard: asks one hook after the other, and remembers what they decided.

Invariants:
- Nothing is let in because something failed: what a hook raises refuses.
- What is remembered is forgotten when a hook says that its rules have changed, also
  where it was asked before they did and answers later.
- A client learns who it is, what it may not do, and no rule of anybody.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import structlog

from acl.api import Decision, Principal, Refused, Source, Verdict
from acl.explaining import NO_OPINION, explain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from acl.administration import Administration
    from acl.api import (
        Authenticator,
        Authorizer,
        Credentials,
        Explanation,
        Hook,
        Need,
    )
    from acl.auditing import Auditor

log = structlog.get_logger(__name__)

MAX_REMEMBERED = 100_000
"""Decisions, of some 400 bytes each; those made longest ago are forgotten."""
MAX_NAME = 255
"""Longer names are no topic's, and not worth the memory."""

_FAILED = "access control has failed; the broker's log says why"


class _Remembered(NamedTuple):
    decision: Decision
    until_s: float
    verdict: Verdict
    """That of a request that needs nothing else."""


class Chain:
    """Hooks in their order; a `Guard`.

    Args:
        audit: Where refusals are written.
        clock: Seconds that only go up.
        dry_run: Write what would be refused, and refuse nothing.
        max_remembered: Decisions that are kept at most.
    """

    def __init__(
        self,
        audit: Auditor,
        clock: Callable[[], float],
        *,
        dry_run: bool = False,
        max_remembered: int = MAX_REMEMBERED,
    ) -> None:
        self._audit = audit
        self._clock = clock
        self._dry_run = dry_run
        self._max = max_remembered
        self._hooks: dict[str, Hook] = {}
        self._authenticators: list[tuple[str, Authenticator]] = []
        self._authorizers: list[tuple[str, Authorizer]] = []
        self._remembered: OrderedDict[tuple[object, ...], _Remembered] = OrderedDict()
        self._generation = 0
        self._watching: list[Callable[[], None]] = []

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after rules have changed."""
        self._watching.append(changed)

    def add(self, name: str, hook: Hook) -> None:
        """Ask a hook after those that are there."""
        self._hooks[name] = hook
        if hook.authenticator is not None:
            self._authenticators.append((name, hook.authenticator))
        if hook.authorizer is not None:
            self._authorizers.append((name, hook.authorizer))

    @property
    def administration(self) -> Administration | None:
        """That of the first hook that has one."""
        for hook in self._hooks.values():
            if hook.administration is not None:
                return hook.administration
        return None

    @property
    def remembered(self) -> int:
        """Decisions that are remembered."""
        return len(self._remembered)

    def forget(self) -> None:
        """Rules have changed: decide anew."""
        self._generation += 1
        self._remembered.clear()
        for changed in self._watching:
            changed()

    async def close(self) -> None:
        """Close every hook."""
        for name, hook in self._hooks.items():
            if hook.close is not None:
                try:
                    await hook.close()
                except Exception:
                    log.exception("a hook failed at its end", hook=name)

    # Who somebody is.

    def identify(
        self, credentials: Credentials, source: Source, request: str
    ) -> Verdict | Awaitable[Verdict]:
        """Say who sends a request."""
        found = self._who(credentials, source, request)
        if isinstance(found, Principal):
            return Verdict(allowed=True, principal=found)
        return found

    def admit(
        self,
        credentials: Credentials,
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict | Awaitable[Verdict]:
        """Say who sends a request, and whether they may have it done."""
        found = self._who(credentials, source, request)
        if isinstance(found, Principal):
            return self.permit(found, needs, source, request)
        if isinstance(found, Verdict):
            return found
        return self._admit_later(found, needs, source, request)

    async def _admit_later(
        self,
        identified: Awaitable[Verdict],
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict:
        found = await identified
        if found.principal is None:
            return found
        permitted = self.permit(found.principal, needs, source, request)
        return permitted if isinstance(permitted, Verdict) else await permitted

    def _who(
        self, credentials: Credentials, source: Source, request: str
    ) -> Principal | Verdict | Awaitable[Verdict]:
        for index, (name, hook) in enumerate(self._authenticators):
            try:
                found = hook.authenticate(credentials, source)
            except Exception as error:  # noqa: BLE001 - of others; it refuses
                return self._failed(name, error, None, (), source, request)
            if isinstance(found, Principal):
                return found
            if isinstance(found, Refused):
                return self._unknown(found, credentials, source, request)
            if found is not None:
                return self._identify(index, found, credentials, source, request)
        return self._unknown(_nobody(credentials), credentials, source, request)

    async def _identify(
        self,
        index: int,
        found: Awaitable[Principal | Refused | None],
        credentials: Credentials,
        source: Source,
        request: str,
    ) -> Verdict:
        """Go on where an answer takes time."""
        waited: object = found
        for name, hook in self._authenticators[index:]:
            try:
                if waited is None:
                    waited = hook.authenticate(credentials, source)
                if inspect.isawaitable(waited):
                    waited = await waited
            except Exception as error:  # noqa: BLE001 - of others; it refuses
                return self._failed(name, error, None, (), source, request)
            if isinstance(waited, Principal):
                return Verdict(allowed=True, principal=waited)
            if isinstance(waited, Refused):
                return self._unknown(waited, credentials, source, request)
            waited = None
        return self._unknown(_nobody(credentials), credentials, source, request)

    def _unknown(
        self, refused: Refused, credentials: Credentials, source: Source, request: str
    ) -> Verdict:
        self._write(
            request=request,
            claimed=credentials.access_key,
            address=source.address,
            channel=source.channel.value,
            reason=refused.reason,
        )
        return Verdict(allowed=self._dry_run, remark=refused.remark)

    # What they may do.

    def permit(
        self,
        principal: Principal | None,
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict | Awaitable[Verdict]:
        """Say whether somebody may have a request done."""
        if principal is None:
            return Verdict(allowed=self._dry_run)
        if principal.super:
            return Verdict(allowed=True, principal=principal)
        verdict = None
        for need in needs:
            key = principal, need, source.address, source.channel
            known = self._remembered.get(key)
            if known is None or known.until_s <= self._clock():
                index = needs.index(need)
                return self._permit(principal, needs, index, source, request)
            verdict = known.verdict
            if not verdict.allowed:
                return self._refuse(principal, need, known.decision, source, request)
        return verdict or Verdict(allowed=True, principal=principal)

    def _permit(
        self,
        principal: Principal,
        needs: tuple[Need, ...],
        index: int,
        source: Source,
        request: str,
    ) -> Verdict | Awaitable[Verdict]:
        """Go on with a need that nothing is remembered of."""
        for done, need in enumerate(needs[index:], index):
            generation = self._generation
            for order, (name, hook) in enumerate(self._authorizers):
                try:
                    found = hook.authorize(principal, need, source)
                except Exception as error:  # noqa: BLE001 - of others; it refuses
                    return self._failed(
                        name, error, principal, (need,), source, request
                    )
                if found is None:
                    continue
                if not isinstance(found, Decision):
                    return self._permit_later(
                        *(principal, needs, done, order, generation),
                        *(found, source, request),
                    )
                break
            else:
                found = NO_OPINION
            self._remember(principal, need, source, found, generation)
            if not found.allowed:
                return self._refuse(principal, need, found, source, request)
        return Verdict(allowed=True, principal=principal)

    async def _permit_later(
        self,
        principal: Principal,
        needs: tuple[Need, ...],
        index: int,
        order: int,
        generation: int,
        found: Awaitable[Decision | None],
        source: Source,
        request: str,
    ) -> Verdict:
        """Go on where an answer takes time."""
        need = needs[index]
        waited: object = found
        for name, hook in self._authorizers[order:]:
            try:
                if waited is None:
                    waited = hook.authorize(principal, need, source)
                if inspect.isawaitable(waited):
                    waited = await waited
            except Exception as error:  # noqa: BLE001 - of others; it refuses
                return self._failed(name, error, principal, (need,), source, request)
            if isinstance(waited, Decision):
                break
            waited = None
        decision = waited if isinstance(waited, Decision) else NO_OPINION
        self._remember(principal, need, source, decision, generation)
        if not decision.allowed:
            return self._refuse(principal, need, decision, source, request)
        rest = self.permit(principal, needs[index + 1 :], source, request)
        return rest if isinstance(rest, Verdict) else await rest

    def _remember(
        self,
        principal: Principal,
        need: Need,
        source: Source,
        decision: Decision,
        generation: int,
    ) -> None:
        is_old = generation != self._generation
        if is_old or decision.valid_s == 0 or len(need.resource.name) > MAX_NAME:
            return
        valid_s = float("inf") if decision.valid_s is None else decision.valid_s
        key = principal, need, source.address, source.channel
        self._remembered[key] = _Remembered(
            decision,
            self._clock() + valid_s,
            Verdict(allowed=decision.allowed, principal=principal),
        )
        self._remembered.move_to_end(key)
        if len(self._remembered) > self._max:
            self._remembered.popitem(last=False)

    # Refusing.

    def _refuse(
        self,
        principal: Principal,
        need: Need,
        decision: Decision,
        source: Source,
        request: str,
    ) -> Verdict:
        actions = " or ".join(need.actions)
        self._write(
            request=request,
            principal=str(principal),
            action=actions,
            resource=str(need.resource),
            address=source.address,
            channel=source.channel.value,
            rule=decision.rule,
            reason=decision.reason,
        )
        remark = (
            f"{principal.name:.128} may not {actions} {need.resource!s:.300} "
            f"from {source.address}"
        )
        if decision.remark:
            remark = f"{remark}: {decision.remark}"
        return Verdict(allowed=self._dry_run, principal=principal, remark=remark)

    def _failed(
        self,
        name: str,
        error: Exception,
        principal: Principal | None,
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict:
        log.error("a hook failed", hook=name, exc_info=error)
        self._write(
            request=request,
            principal=str(principal) if principal else None,
            resource=", ".join(str(one.resource) for one in needs),
            address=source.address,
            channel=source.channel.value,
            reason=f"hook {name} failed",
        )
        return Verdict(allowed=self._dry_run, principal=principal, remark=_FAILED)

    def _write(self, **values: str | None) -> None:
        event = "would be refused" if self._dry_run else "refused"
        self._audit.attempt(event, **values)

    async def explain(self, principal: str, need: Need, source: Source) -> Explanation:
        """Say what would be decided for a principal of a name."""
        return await explain(self._hooks, principal, need, source)


def _nobody(credentials: Credentials) -> Refused:
    if not credentials.given:
        return Refused("no credentials", "no access key or token was given")
    return Refused("nobody has this access key or token")
