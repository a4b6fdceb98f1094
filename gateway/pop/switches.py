"""The two switches of popping that an administrator turns while the broker runs.

*Enable*: whether messages are handed out. Without it pops wait as if queues were empty,
and what is in hand goes its way. *Init*: whether popping works at all. Without it
nothing comes back either, until it is on again.

They are kept in the route store, so they outlive a restart and pass on to who leads
next.

Source: RIP-73 and BrokerConfig.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ropeway.routing.api import RouteStore

NAMESPACE = "ROPEWAY_POP"
"""Of settings; their keys are `broker/name`."""

INIT = "popConsumerKVServiceInit"
ENABLE = "popConsumerKVServiceEnable"
NAMES = (INIT, ENABLE)
_ON, _OFF = "true", "false"
VALUES = (_ON, _OFF)


class Switches:
    """The switches of one broker; both are on until somebody says otherwise.

    Args:
        routes: Where they are kept.
        broker: The broker's name.
    """

    def __init__(self, routes: RouteStore, broker: str) -> None:
        self._routes = routes
        self._broker = broker
        self.works = True
        self.gives = True
        self.wake: Callable[[], None] = lambda: None
        """Called when some were turned, by whom ever."""
        routes.watch_settings(self._changed)

    def look(self) -> bool:
        """Look how they are; tells whether messages may be handed out again."""
        before = self.gives
        self.works = self._is_on(INIT)
        self.gives = self.works and self._is_on(ENABLE)
        return self.gives and not before

    def shown(self) -> dict[str, bool]:
        """How they are set, as of now."""
        return {name: self._is_on(name) for name in NAMES}

    def _is_on(self, name: str) -> bool:
        key = (NAMESPACE, f"{self._broker}/{name}")
        return self._routes.settings.get(key, _ON) == _ON

    async def turn(self, values: Mapping[str, str]) -> None:
        """Turn switches, by their names, to `true` or `false`.

        Raises:
            RouteError: They cannot be kept now.
        """
        for name, value in values.items():
            key = f"{self._broker}/{name}"
            await self._routes.put_setting(NAMESPACE, key, value)

    def _changed(self, namespace: str) -> None:
        if namespace == NAMESPACE:
            self.wake()
