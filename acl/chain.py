"""The guard: asks one hook after the other, and remembers what they decided.

Invariants:
- Nothing is let in because something failed: what a hook raises refuses.
- What is remembered is forgotten when a hook says that its rules have changed, also
  where it was asked before they did and answers later.
- A client learns who it is, what it may not do, and no rule of anybody.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct

from ropeway.acl.api import Decision, Principal, Refused, Source, Verdict
from ropeway.acl.explain import NO_OPINION, explain
from ropeway.common.eager import own_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.administration import Administration
    from ropeway.acl.api import (
        Authenticator,
        Authorizer,
        Credentials,
        Explanation,
        Hook,
        Need,
    )
    from ropeway.acl.audit_api import Auditor

log = structlog.get_logger(__name__)

MAX_REMEMBERED = 100_000
"""Decisions, of some 400 bytes each; those made longest ago are forgotten."""
MAX_NAME = 255
"""Longer names are no topic's, and not worth the memory."""

_FAILED = "access control has failed; the broker's log says why"


class _Remembered(Struct, frozen=True, gc=False):
    """Without references back, as all that it has: no work for garbage collections."""

    decision: Decision
    until_s: float
    verdict: Verdict
    """That of a request that needs nothing else."""


class _HookError(Exception):
    """A hook has failed to answer."""

    def __init__(self, hook: str, error: Exception) -> None:
        super().__init__(hook)
        self.hook = hook
        self.error = error


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

    async def identify(
        self, credentials: Credentials, source: Source, request: str
    ) -> Verdict:
        """Say who sends a request."""
        for name, hook in self._authenticators:
            try:
                found = hook.authenticate(credentials, source)
                if found is not None and not isinstance(found, (Principal, Refused)):
                    found = await own_task(found)
            except Exception as error:  # noqa: BLE001 - of others; it refuses
                return self._failed(name, error, None, (), source, request)
            if isinstance(found, Principal):
                return Verdict(allowed=True, principal=found)
            if found is not None:
                return self._unknown(found, credentials, source, request)
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

    async def permit(
        self,
        principal: Principal | None,
        needs: tuple[Need, ...],
        source: Source,
        request: str,
    ) -> Verdict:
        """Say whether somebody may have a request done."""
        if principal is None:
            return Verdict(allowed=self._dry_run)
        if principal.super:
            return Verdict(allowed=True, principal=principal)
        verdict = None
        for need in needs:
            known = self._recall(principal, need, source)
            if known is None:
                try:
                    known = await self._decide(principal, need, source)
                except _HookError as failed:
                    return self._failed(
                        failed.hook, failed.error, principal, (need,), source, request
                    )
            verdict = known.verdict
            if not verdict.allowed:
                return self._refuse(principal, need, known.decision, source, request)
        return verdict or Verdict(allowed=True, principal=principal)

    async def may(
        self, principal: Principal | None, needs: tuple[Need, ...], source: Source
    ) -> bool:
        """Say the same of what nobody tries yet: a refusal is not written."""
        if principal is None or self._dry_run:
            return self._dry_run
        if principal.super:
            return True
        for need in needs:
            known = self._recall(principal, need, source)
            if known is None:
                try:
                    known = await self._decide(principal, need, source)
                except _HookError as failed:
                    log.warning("a hook failed", hook=failed.hook, reason=failed.error)
                    return False
            if not known.verdict.allowed:
                return False
        return True

    def _recall(
        self, principal: Principal, need: Need, source: Source
    ) -> _Remembered | None:
        """What was decided, where that still holds."""
        known = self._remembered.get(_key(principal, need, source))
        return None if known is None or known.until_s <= self._clock() else known

    async def _decide(
        self, principal: Principal, need: Need, source: Source
    ) -> _Remembered:
        """Ask the hooks for what nothing is remembered of.

        Raises:
            _HookError: One has failed.
        """
        generation = self._generation
        decision = NO_OPINION
        for name, hook in self._authorizers:
            try:
                found = hook.authorize(principal, need, source)
                if found is not None and not isinstance(found, Decision):
                    found = await own_task(found)
            except Exception as error:
                raise _HookError(name, error) from error
            if found is not None:
                decision = found
                break
        return self._remember(principal, need, source, decision, generation)

    def _remember(
        self,
        principal: Principal,
        need: Need,
        source: Source,
        decision: Decision,
        generation: int,
    ) -> _Remembered:
        valid_s = float("inf") if decision.valid_s is None else decision.valid_s
        verdict = Verdict(allowed=decision.allowed, principal=principal)
        decided = _Remembered(decision, self._clock() + valid_s, verdict)
        is_old = generation != self._generation
        if is_old or decision.valid_s == 0 or len(need.resource.name) > MAX_NAME:
            return decided
        key = _key(principal, need, source)
        self._remembered[key] = decided
        self._remembered.move_to_end(key)
        if len(self._remembered) > self._max:
            self._remembered.popitem(last=False)
        return decided

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


def _key(principal: Principal, need: Need, source: Source) -> tuple[object, ...]:
    return principal, need, source.address, source.channel._value_


def _nobody(credentials: Credentials) -> Refused:
    if not credentials.given:
        return Refused("no credentials", "no access key or token was given")
    return Refused("nobody has this access key or token")
