"""Rules of access control, kept among the settings of the route store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.acl.api import StoreError
from ropeway.gateway.node import names
from ropeway.routing.api import RouteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.routing.api import RouteStore


class RouteRules:
    """The rules of one hook: an `acl.api.RuleStore`.

    Args:
        routes: Where settings are.
        hook: The hook's name; its settings are those of a namespace.
    """

    def __init__(self, routes: RouteStore, hook: str) -> None:
        self._routes = routes
        self._namespace = f"{names.ACCESS_NAMESPACES}_{hook}"

    def items(self) -> dict[str, str]:
        """All that is kept, as this node knows it now."""
        return {
            key: value
            for (namespace, key), value in self._routes.settings.items()
            if namespace == self._namespace
        }

    async def change(
        self, key: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Set or remove what is kept under a key."""
        try:
            await self._routes.change_setting(self._namespace, key, change)
        except RouteError as error:
            raise StoreError(str(error)) from error

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after something was changed, on any node."""

        def told(namespace: str) -> None:
            if namespace == self._namespace:
                changed()

        self._routes.watch_settings(told)
