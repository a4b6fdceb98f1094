"""Topics that the configuration names, which a node creates when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.config import ConfigError
from ropeway.gateway.node import names, placement
from ropeway.gateway.node.topic_changes import TopicError
from ropeway.routing.api import Topic

if TYPE_CHECKING:
    from ropeway.gateway.config import Config
    from ropeway.gateway.node.topics import Topics
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Log

_log = structlog.get_logger(__name__)


class InitialTopics:
    """The duty to create the topics of the setting `topics.create`.

    A topic that exists is left as it is. One that is deleted later comes back with the
    next start, and not when this node becomes its broker's master again.

    Raises:
        ConfigError: A name is one of the system's.
    """

    def __init__(
        self, config: Config, routes: RouteStore, topics: Topics, log: Log
    ) -> None:
        self._config = config
        self._routes = routes
        self._topics = topics
        self._is_shared = log.numbering == "dense"
        """Whether brokers share the log, so that one creates a topic on all."""
        self._left = dict(config.topics.create)
        """What was not created yet, and how many queues each is to have."""
        for name in self._left:
            if names.reserved_complaint(name, config.cluster, config.broker):
                raise ConfigError(
                    f"topics.create has {name!r}, a topic of the system; allowed: "
                    "other names"
                )

    async def take_over(self) -> None:
        """Create those that are missing.

        Raises:
            LogError: The log cannot make a topic's partitions.
            RouteError: The routes cannot be changed.
        """
        while self._left:
            name = next(iter(self._left))
            if self._is_missing(name):
                await self._create(name, self._left[name])
            self._left.pop(name, None)

    def _is_missing(self, name: str) -> bool:
        if placement.is_drained(self._routes, self._config.broker):
            return False
        if self._is_shared and name in self._routes.topics:
            return False
        return self._topics.get(name) is None

    async def _create(self, name: str, queues: int) -> None:
        known = self._routes.topics.get(name)
        topic = known or Topic(
            name=name, read_queue_nums=queues, write_queue_nums=queues
        )
        try:
            await self._topics.put(topic, everywhere=True)
        except TopicError as error:
            _log.error("topic was not created", topic=name, reason=str(error))
        else:
            _log.info("topic created", topic=name, queues=topic.write_queue_nums)

    async def give_up(self) -> None:
        """Nothing to end."""
