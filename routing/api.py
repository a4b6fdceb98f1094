"""The contract of every route store: topics, consumer groups, settings and brokers.

Several processes may share a store. Reads are answered from a copy in memory, which
follows what the others change within a moment, and never wait; who cannot do with a
copy of a moment ago catches up first. Changes are made on what the store has then, one
after the other, and are on the medium when they return.
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


class NoRoutesError(RouteError):
    """There is no route store at that place, and none was to be made."""


class NameTakenError(RouteError):
    """Another process lives that has a node's name; the text says where it is."""


class Deletion(Struct, frozen=True, kw_only=True):
    """What is left to do of a topic's deletion: its tombstone.

    It stays until each broker that had queues has applied it, and the messages are
    deleted; and while other brokers have queues of the same generation.
    """

    generation: int
    partitions: list[int]
    """Those that were deleted; nobody gets them again in this generation."""
    pending: list[str]
    """Brokers that have it to apply before they serve the topic again, sorted."""
    stored: bool = True
    """Whether messages may still be there."""


AT_SOURCE, PASSED_ON, STORED = "at_source", "passed_on", "stored"
"""Where producers' messages of a mirrored topic are stored: there, where they send
them themselves; there, where this cluster sends them on to; here."""
SENT_BACK, RETURNED = "sent_back", "returned"
"""Likewise, of one that was cut over and goes back: there, where this cluster sends
them on to, while consumers read here; there, as at first, and what old routes still
lead here is sent on."""


class Topic(Struct, frozen=True, kw_only=True):
    """How a topic is set up, on all of its brokers, and where its queues live."""

    name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int = PERM_READ | PERM_WRITE
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    attributes: dict[str, str] = {}
    route: dict[str, list[int]] = {}
    """Broker name to the partitions of its queues; a queue id indexes the list.

    No two queues of a topic have the same partition, whichever brokers they are on.
    A broker may have fewer queues than the topic is set up for, or more.
    """
    generation: int = 0
    """Of queues that a broker gets from now on; each deletion has it grow.

    What is stored of a topic on a log that brokers share is its generation's: one that
    was deleted is never used again.
    """
    generations: dict[str, int] = {}
    """Broker name to the generation of its queues, where that is not 0."""
    deletions: list[Deletion] = []
    """What is not done yet of deletions, one for a generation."""

    mirrored: bool = False
    """Whether it is another cluster's still, and here a copy that only a mirror writes.

    In a migration clients are led there. It ends when clients may write to it here.
    """
    writes: str = AT_SOURCE
    """Where the messages of producers are stored while it is mirrored.

    With `PASSED_ON` and `STORED`, producers are led here, and consumers to the other
    cluster; with `SENT_BACK`, both are led here.
    """
    cut_offsets: list[int] = []
    """Of a topic that was cut over, by queue id: from which offset on messages were
    stored here first. Empty where it came from nowhere, or its migration is finished.
    """

    moved: list[int] = []
    """Partitions that were another broker's queues before: what is stored in them may
    say another queue id."""

    floors: dict[int, int] = {}
    """By partition the offset below which it was trimmed, where the log does not keep
    it; 0 where it is missing."""

    @property
    def is_deleted(self) -> bool:
        """Whether no broker has queues of it any more: it only tells what was."""
        return self.generation > 0 and not self.route

    @property
    def is_migrating(self) -> bool:
        """Whether it is a mirror, or has come from a source and may go back.

        Its queues are those of one broker then, whose leader decides alone where
        messages are stored.
        """
        return self.mirrored or bool(self.cut_offsets)

    @property
    def is_at_source(self) -> bool:
        """Whether clients use it at a migration's source, and nothing of it here."""
        return self.mirrored and self.writes in (AT_SOURCE, RETURNED)

    def is_live(self, generation: int) -> bool:
        """Whether a broker has queues of a generation."""
        return any(
            self.generations.get(broker, 0) == generation for broker in self.route
        )


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How long a group's messages wait to come again, by how often they have come.

    Clients that name a delay level, as all remoting clients do, do not ask for it.
    """

    exponential: bool = False
    initial_ms: int = 5_000
    multiplier: int = 2
    max_ms: int = 7_200_000
    delays_ms: tuple[int, ...] = tuple(
        1_000 * seconds
        for seconds in (
            *(1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600),
            *(1200, 1800, 3600, 7200),
        )
    )
    """Those of delay levels, where it is not exponential: the third is the first."""


class Group(Struct, frozen=True, kw_only=True):
    """How a consumer group is set up."""

    name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    retry_policy: RetryPolicy = RetryPolicy()
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    attributes: dict[str, str] = {}


class Broker(Struct, frozen=True, kw_only=True):
    """A node that serves a broker, as its master or as one of its slaves."""

    name: str
    node: str
    """Which node; the same one again after a restart."""
    cluster: str
    addresses: tuple[str, ...]
    """Where clients reach it: host:port for each of its listeners, in their order.

    The brokers of a cluster have the same listeners: who asks the second of one is
    told the second of the others.
    """
    pid: int
    """Its process, for people, and for nodes on the same machine."""
    incarnation: str = ""
    """Which process, of all that ever have the node's name; made at its start.

    Empty in what versions announced that had none.
    """

    def is_process(self, other: Broker) -> bool:
        """Whether another announcement is of the same process, as the same node."""
        return (self.name, self.node, self.incarnation) == (
            *(other.name, other.node, other.incarnation),
        )


class RouteStore(Protocol):
    """Topics, groups, settings and brokers, and who is told when topics change."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name; a live view, not to be kept across an await."""

    @property
    def deleted(self) -> Mapping[str, Topic]:
        """What is kept of topics that were deleted, by name; a live view likewise."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """Every consumer group by its name; a live view likewise."""

    @property
    def settings(self) -> Mapping[tuple[str, str], str]:
        """Every setting by its namespace and key; a live view likewise."""

    @property
    def brokers(self) -> Mapping[str, tuple[Broker, ...]]:
        """The nodes of every broker that runs, by the broker's name; one at least.

        The first is the master, and the others take over in their order. That order is
        the order of `put_broker`, so a node that comes back is the last. A node that
        died is among them for seconds.
        """

    @property
    def held_until_s(self) -> float:
        """Until when nobody can have taken the place of this process' brokers.

        In seconds of `time.monotonic`; infinite where nobody ever can. A process that
        was stopped for longer than that finds it in the past.
        """

    async def catch_up(self) -> None:
        """Have in the copy all that this and others on this machine had changed by now.

        It never waits for another machine: what nodes there changed comes a moment
        later. Where the store cannot be read now, the copy stays as it is.
        """

    async def refresh(self) -> None:
        """Have in the copy all topics, groups and settings that anybody had by now.

        Unlike `catch_up`, it asks the store, also for what other machines changed.

        Raises:
            RouteError: The store cannot be read.
        """

    async def find_topic(self, name: str) -> Topic | None:
        """A topic that may have been made a moment ago, wherever.

        It is answered from the copy where that has it. Otherwise the store is asked,
        for a bounded time; None where it does not know the topic, or does not answer.
        """

    async def change_topic(
        self, name: str, change: Callable[[Topic | None], Topic | None]
    ) -> None:
        """Create, replace or forget a topic.

        Args:
            name: The topic's name.
            change: Gets the topic as the store has it, also what is kept of a deleted
                one, None where it has none, and returns what it is to be, None to
                forget it. Nobody else changes it meanwhile; where somebody did, it is
                called again. What it raises is passed on.

        Raises:
            RouteStoreUnavailableError: Nothing was changed; or, of a store on other
                machines that was lost meanwhile, nobody knows.
            RouteError: What the store has of the topic is damaged.
        """

    async def change_group(
        self, name: str, change: Callable[[Group | None], Group | None]
    ) -> None:
        """Create, replace or delete a group, as `change_topic` does a topic."""

    async def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None.

        Raises:
            RouteStoreUnavailableError: As of `change_topic`.
        """

    async def change_setting(
        self, namespace: str, key: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Set, replace or remove a setting, as `change_topic` does a topic."""

    async def put_broker(self, broker: Broker) -> None:
        """Announce this process as a node of a broker.

        It is among the broker's nodes until it is removed, the store is closed, or some
        seconds after this process has ended; where it loses its place otherwise, it is
        announced again. What the same process announced before is replaced. Another
        process of the same name, as one that has just died, is waited for until it is
        gone, for as long as a dead one may be known.

        Raises:
            RouteStoreUnavailableError: It was not announced.
            NameTakenError: Another process lives that has the node's name.
        """

    async def remove_broker(
        self, name: str, node: str, incarnation: str | None = None
    ) -> None:
        """Remove a node of a broker, this process or one that has ended.

        Args:
            name: The broker.
            node: The node.
            incarnation: The process; another one of that name stays. None: whichever.

        Raises:
            RouteStoreUnavailableError: It is still there.
        """

    def watch_names(self, lost: Callable[[str], None]) -> None:
        """Call `lost` with why, when another process has a node's name for good.

        It came while this process stood still, or was not known to the store; it is the
        rightful one, and this process must end.
        """

    def watch_topics(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a topic's name after it was changed, by whom ever.

        It must not change routes itself.
        """

    def watch_settings(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a namespace after a setting of it was changed.

        It must not change settings itself.
        """

    def watch_brokers(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a broker's name after its nodes or their order changed.

        It is called for the nodes of others; those of this process need not be told.
        """

    async def close(self) -> None:
        """Release every resource. Twice is fine."""


class OpenRoutes(Protocol):
    """What an entry point of `ropeway.routes` is: it opens the store at a URL.

    The URL's scheme is the entry point's name.
    """

    async def __call__(self, url: str, *, make: bool) -> RouteStore:
        """Open a store.

        Args:
            url: As the configuration has it.
            make: Whether one is made where there is none.

        Raises:
            NoRoutesError: There is none, and none was to be made.
            RouteError: It cannot be opened.
        """
