"""Rules of ACL 2.0: which of them match, and which of those decides.

Source: AclAuthorizationHandler, PolicyEntry and Resource, RocketMQ 5.5.0. There, of two
rules for the very same resource, which cannot be stored, the one that allows would come
first; here the one that denies does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.acl.addresses import AddressError, parse_networks
from ropeway.acl.administration import RulesError
from ropeway.acl.api import Action, ResourceKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.acl.administration import Rule, Rules
    from ropeway.acl.api import Need

_ACTIONS = {one.lower(): one for one in Action}
ALL = "All"
"""Among a rule's actions: every one of them."""
_KINDS = {one.lower(): one for one in ResourceKind}
ANY = "*"

_MAX_NAME = 255


class _Entry(Struct, frozen=True):
    kind: ResourceKind | None
    """None: every kind."""
    name: str | None
    """None: every name."""
    is_prefix: bool
    actions: frozenset[str]
    sources: Callable[[str], bool] | None
    allowed: bool
    text: str

    def matches(self, need: Need, address: str) -> bool:
        kind, name = need.resource.kind, need.resource.name
        if self.kind is not None:
            if kind != self.kind:
                return False
            if self.name is not None and not (
                name.startswith(self.name) if self.is_prefix else name == self.name
            ):
                return False
        if self.actions.isdisjoint(need.actions):
            return False
        return self.sources is None or self.sources(address)

    @property
    def rank(self) -> tuple[int, int, int]:
        """The lowest decides: the most exact resource first, then what denies."""
        if self.kind is None:
            exactness = 3
        elif self.name is None:
            exactness = 2
        else:
            exactness = 1 if self.is_prefix else 0
        length = len(self.name) if self.is_prefix and self.name else 0
        return exactness, -length, int(self.allowed)


class Policies:
    """What one subject may do."""

    def __init__(self, rules: Rules) -> None:
        """Understand rules.

        Raises:
            RulesError: One cannot be understood.
        """
        # Sorted by rank, the first that matches decides.
        self._custom = _sorted("Custom", rules.custom)
        self._default = _sorted("Default", rules.default)

    def decide(self, need: Need, address: str) -> tuple[bool, str] | None:
        """Whether it is allowed, and by which rule; None where none matches."""
        for entries in (self._custom, self._default):
            for entry in entries:
                if entry.matches(need, address):
                    return entry.allowed, entry.text
        return None


def _sorted(policy: str, rules: Iterable[Rule]) -> list[_Entry]:
    return sorted((_parse(policy, one) for one in rules), key=lambda one: one.rank)


def _parse(policy: str, rule: Rule) -> _Entry:
    kind, name, is_prefix = parse_resource(rule.resource)
    if not rule.actions:
        raise RulesError("The actions is empty.")
    names = [action_name(one) for one in rule.actions]
    sources = None
    if rule.sources:
        try:
            sources = parse_networks(rule.sources)
        except AddressError as error:
            raise RulesError(str(error)) from error
    return _Entry(
        kind,
        name,
        is_prefix,
        frozenset(Action if ALL in names else names),
        sources,
        rule.allowed,
        f"{policy} policy {rule.resource} {','.join(names)} "
        f"{'allow' if rule.allowed else 'deny'}"
        + (f" from {','.join(rule.sources)}" if rule.sources else ""),
    )


def parse_resource(text: str) -> tuple[ResourceKind | None, str | None, bool]:
    """Read a resource of a rule: its kind, its name, and whether that is a prefix.

    Raises:
        RulesError: It is none.
    """
    if text == ANY:
        return None, None, False
    kind, colon, name = text.partition(":")
    known = _KINDS.get(kind.lower())
    if known is None or not colon or not name or len(name) > _MAX_NAME:
        raise RulesError(
            f"resource {text!r:.80}; allowed: * or Topic:NAME, Topic:PREFIX*, Topic:*, "
            "and likewise Group, Cluster and Namespace"
        )
    if name == ANY:
        return known, None, False
    if not name.isprintable() or not name.isascii() or ANY in name[:-1]:
        raise RulesError(
            f"resource {text!a:.80}; allowed: names of plain ASCII, with * at the end "
            "alone"
        )
    if name.endswith(ANY):
        return known, name[:-1], True
    return known, name, False


def action_name(text: str) -> str:
    """An action as it is spelt, however it is written.

    Raises:
        RulesError: There is no such action.
    """
    lower = text.strip().lower()
    if lower == ALL.lower():
        return ALL
    if lower not in _ACTIONS:
        raise RulesError(f"action {text!r:.40}; allowed: {', '.join(Action)} and {ALL}")
    return _ACTIONS[lower]
