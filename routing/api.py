"""The contract of every route store: topics, consumer groups and settings.

Reads are answered from a copy in memory and never wait. Writes go to the store,
compare versions where it is shared, and are on the medium when they return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1


class RouteError(Exception):
    """A route store could not do what was asked; the text says why."""


class RouteStoreUnavailableError(RouteError):
    """The store cannot be reached or written now; asking again later may work."""


class Topic(Struct, frozen=True, kw_only=True):
    """How a topic is set up, and where its queues live."""

    name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int = PERM_READ | PERM_WRITE
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    attributes: dict[str, str] = {}
    route: dict[str, list[int]] = {}
    """Broker name to the partitions of its queues; a queue id indexes the list."""


class Group(Struct, frozen=True, kw_only=True):
    """How a consumer group is set up."""

    name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    attributes: dict[str, str] = {}


class RouteStore(Protocol):
    """Topics, groups and settings, and who is told when they change."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name; a live view, not to be kept across an await."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """Every consumer group by its name."""

    @property
    def settings(self) -> Mapping[tuple[str, str], str]:
        """Every setting by its namespace and key."""

    async def put_topic(self, topic: Topic) -> None:
        """Create or replace a topic.

        Raises:
            RouteStoreUnavailableError: Nothing was changed.
        """

    async def delete_topic(self, name: str) -> None:
        """Remove a topic; nothing happens where there is none."""

    async def put_group(self, group: Group) -> None:
        """Create or replace a group."""

    async def delete_group(self, name: str) -> None:
        """Remove a group; nothing happens where there is none."""

    async def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None."""

    def watch_topics(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a topic's name after it was put or deleted."""

    async def close(self) -> None:
        """Release every resource. Twice is fine."""
