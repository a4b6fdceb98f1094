"""What would be decided for somebody, and by whom: nothing of it is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.acl.api import Credentials, Decision, Explanation, Principal
from ropeway.common.eager import settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.api import Hook, Need, Source

NO_OPINION = Decision(allowed=False, rule="no hook has a rule for it")


async def explain(
    hooks: Mapping[str, Hook], principal: str, need: Need, source: Source
) -> Explanation:
    """Say what hooks, in their order, would decide.

    Args:
        hooks: By their names.
        principal: An access key, which the hooks are asked for as when it signs; or a
            hook's name and one that it knows, with a colon between.
        need: What it would do.
        source: From where.
    """
    who = await _find(hooks, principal, source)
    if who is None:
        return Explanation(None, Decision(allowed=False, rule="nobody has the name"))
    if who.super:
        return Explanation(who, Decision(allowed=True, rule=f"{who.rule} is super"))
    for name, hook in hooks.items():
        if hook.authorizer is None:
            continue
        decision = await settled(hook.authorizer.authorize(who, need, source))
        if decision is not None:
            return Explanation(who, decision, name)
    return Explanation(who, NO_OPINION)


async def _find(
    hooks: Mapping[str, Hook], text: str, source: Source
) -> Principal | None:
    """Who sends with such an access key; or else who has the name in another way."""
    named, colon, name = text.partition(":")
    if colon and named in hooks:
        return _by_name(hooks[named], name)
    for hook in hooks.values():
        if hook.authenticator is None:
            continue
        credentials = Credentials(access_key=text)
        found = await settled(hook.authenticator.authenticate(credentials, source))
        if isinstance(found, Principal):  # by its address
            return found
        if found is not None:  # it lacks the signature
            return _by_name(hook, text)
    return next(filter(None, (_by_name(hook, text) for hook in hooks.values())), None)


def _by_name(hook: Hook, name: str) -> Principal | None:
    return None if hook.find is None else hook.find(name)
