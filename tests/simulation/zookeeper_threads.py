"""The threads of kazoo's client that hand on answers and watches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.zookeeper_client import Client

THREAD_S = (10e-6, 200e-6)
LATE = 0.02
LATE_S = (1e-3, 50e-3)
"""How long a thread takes until it goes on with what it is given."""


class Result:
    """What will be answered: as much of kazoo's `AsyncResult` as is used."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._callbacks: list[Callable[[Result], None]] = []
        self.is_set = False
        self.value: Any = None
        self.exception: Exception | None = None

    def set_answer(self, answer: Any) -> None:
        """Have an answer, which may be an error."""
        self.is_set = True
        if isinstance(answer, Exception):
            self.exception = answer
        else:
            self.value = answer
        for callback in self._callbacks:
            self._client.completions.put(partial(callback, self))

    def rawlink(self, callback: Callable[[Result], None]) -> None:
        """Have a function called with this when it is answered."""
        self._callbacks.append(callback)
        if self.is_set:
            self._client.completions.put(partial(callback, self))


class Thread:
    """Calls functions in their order, each a little later."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last_s = 0.0

    def put(self, function: Callable[[], None]) -> None:
        """Have a function called."""
        client = self._client
        late = client.chance.random() < LATE
        wait_s = client.chance.uniform(*(LATE_S if late else THREAD_S))
        when_s = max(client.loop.time() + wait_s, self._last_s + 1e-7)
        self._last_s = when_s
        client.loop.call_at(when_s, function, context=client.process.context.copy())
