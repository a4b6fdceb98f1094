"""What all clients have in common: they start, close, and are used by `async with`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ropeway.client.table import Table

if TYPE_CHECKING:
    from ropeway.client.config import ConsumerConfig
    from ropeway.client.instance import Instance


class Client:
    """A client that runs from `start` to `close`, or within an `async with`."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    @property
    def client_id(self) -> str:
        """The name that brokers know this client by."""
        return self._instance.client_id

    def table(self, topic: str, config: ConsumerConfig | None = None) -> Table:
        """The last message of each key of a topic, as a map that follows it.

        Args:
            topic: A compacted one, or any whose messages have keys.
            config: Sizes and times of its pulls.
        """
        return Table(self._instance, topic, config)

    async def start(self) -> None:
        """Start; servers are first asked when something is wanted.

        Raises:
            ClientClosedError: It was started before.
        """
        self._instance.start()

    async def close(self) -> None:
        """Close the connections; what is under way fails, and no batch is committed."""
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
