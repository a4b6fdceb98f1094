"""Consumer groups' set-up, made on first use where that is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.routing.api import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.gateway.config import Config
    from ropeway.routing.api import RouteStore


class Groups:
    """Every consumer group of the cluster."""

    def __init__(self, config: Config, routes: RouteStore) -> None:
        self._auto_create = config.topics.auto_create_groups
        self._routes = routes
        self.get = routes.groups.get
        """The group of a name, or None."""

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._routes.groups.values()))

    async def find(self, name: str) -> Group | None:
        """The group of a name, or None; also one that another node has just made."""
        if group := self.get(name):
            return group
        await self._routes.catch_up()
        return self.get(name)

    async def ensure(
        self, name: str, made: Callable[[Group], None] | None = None
    ) -> Group | None:
        """The group, made where it is missing; None where that is not allowed.

        Args:
            name: The group's name.
            made: Called where this call has made it.
        """
        if group := await self.find(name):
            return group
        if not self._auto_create or names.group_complaint(name):
            return None
        is_new = False

        def make(old: Group | None) -> Group:
            nonlocal is_new
            is_new = old is None
            return old or Group(name=name)

        await self._routes.change_group(name, make)
        group = self.get(name)
        if is_new and made is not None and group is not None:
            made(group)
        return group

    async def put(self, group: Group) -> None:
        """Create or replace a group."""
        await self._routes.change_group(group.name, lambda _: group)

    async def delete(self, name: str) -> None:
        """Remove a group."""
        await self._routes.change_group(name, lambda _: None)
