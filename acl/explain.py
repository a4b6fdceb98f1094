"""What would be decided for somebody, and by whom: nothing of it is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.acl.api import Decision, Explanation
from ropeway.common.eager import settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.api import Hook, Need, Principal, Source

NO_OPINION = Decision(allowed=False, rule="no hook has a rule for it")


async def explain(
    hooks: Mapping[str, Hook], principal: str, need: Need, source: Source
) -> Explanation:
    """Say what hooks, in their order, would decide.

    Args:
        hooks: By their names.
        principal: A name, or its hook's and its own with a colon between.
        need: What it would do.
        source: From where.
    """
    who = _find(hooks, principal)
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


def _find(hooks: Mapping[str, Hook], text: str) -> Principal | None:
    for name, hook in hooks.items():
        short = text.removeprefix(f"{name}:")
        if hook.find is not None and (found := hook.find(short)) is not None:
            return found
    return None
