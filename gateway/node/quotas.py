"""Quotas of topics and groups: kept with the routes, counted on each node by itself.

Sends hold back the connection that they come on, as quotas of clients do. Reads wait
each by itself for a permit, so that nothing else on their connection does. A read
takes of all its accounts at once or of none, so that nobody waits for one account and
keeps another from others.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec
import structlog

from ropeway.gateway.config import QuotaConfig
from ropeway.gateway.node.accounts import Account
from ropeway.gateway.wire.commands.quotas import COLD_FORGET_S, COLD_WINDOW_S, Quota
from ropeway.gateway.wire.unreadable import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.routing.api import RouteStore

log = structlog.get_logger(__name__)

NAMESPACE = "ROPEWAY_QUOTAS"
"""Of settings; their keys are `topic/NAME` and `group/NAME`."""
TOPIC, GROUP = "topic", "group"
SENDS, READS, COLD = "send", "read", "cold"
"""What is limited."""


class Key(NamedTuple):
    """What has a quota."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Permit:
    """Lets one read be done, and counts it when it ends; a context manager.

    Args:
        accounts: What it takes of.
        most_bytes: What it may bring.
        ended: Called with what it has brought.
    """

    def __init__(
        self,
        accounts: list[Account],
        most_bytes: int,
        ended: Callable[[int], None] | None = None,
    ) -> None:
        self._taken = [(one, one.begin_read(most_bytes)) for one in accounts]
        self._ended = ended
        self.size_bytes = 0
        """What it has brought."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for account, expected in self._taken:
            account.end_read(expected, self.size_bytes)
        if self._ended is not None:
            self._ended(self.size_bytes)


class ColdRead(NamedTuple):
    """What a group has read of late that was not in memory."""

    since_ms: int
    last_ms: int
    size_bytes: int


class Quotas:
    """The accounts of topics and groups.

    Args:
        routes: Where their quotas are kept; each node follows them.
        most_waiting: So many reads wait at most; one more is not done.
        now_ms: Milliseconds since 1970.
    """

    def __init__(
        self, routes: RouteStore, most_waiting: int, now_ms: Callable[[], int]
    ) -> None:
        self._routes = routes
        self._most_waiting = most_waiting
        self.waiting = 0
        """Reads that wait."""
        self._now_ms = now_ms
        self.kept: dict[Key, Quota] = {}
        self._accounts: dict[tuple[Key, str], Account] = {}
        self.sends: dict[str, Account] = {}
        """By topic. Each send looks whether it is empty."""
        self.limits_reads = False
        """Whether any read is limited. Each read looks at it."""
        self.cold_reads: dict[str, ColdRead] = {}
        """By group, of those whose cold reads are limited."""
        self._follow(NAMESPACE)
        routes.watch_settings(self._follow)

    async def change(self, key: Key, change: Callable[[Quota], Quota | None]) -> None:
        """Change the quota of a topic or a group.

        Args:
            key: Which.
            change: Gets what it is, and returns what it is to be; it may be called
                again.

        Raises:
            RouteError: As of `RouteStore.change_setting`.
        """

        def changed(old: str | None) -> str | None:
            quota = change(_read(key, old) if old is not None else Quota())
            if quota is None or quota == Quota():
                return None
            return msgspec.json.encode(quota).decode()

        await self._routes.change_setting(NAMESPACE, str(key), changed)

    def throttled(self) -> dict[Key, dict[str, int]]:
        """How often something was held back: sends, reads, cold reads."""
        found: dict[Key, dict[str, int]] = {}
        for (key, what), account in self._accounts.items():
            found.setdefault(key, {})[what] = account.throttled
        return found

    def _follow(self, namespace: str) -> None:
        if namespace != NAMESPACE:
            return
        kept = {
            key: _read(key, value)
            for (space, text), value in self._routes.settings.items()
            if space == NAMESPACE and (key := Key(*text.partition("/")[::2]))
        }
        wanted = {
            (key, what): limit
            for key, quota in kept.items()
            for what, limit in _limits(key, quota)
        }
        for place, account in list(self._accounts.items()):
            if wanted.get(place) != account.quota:
                del self._accounts[place]
                account.release()
        for place, limit in wanted.items():
            if place not in self._accounts:
                self._accounts[place] = Account(str(place[0]), limit)
        self.kept = kept
        self.sends = {
            key.name: account
            for (key, what), account in self._accounts.items()
            if what == SENDS
        }
        self.limits_reads = any(what != SENDS for _, what in self._accounts)
        limited = {key.name for key, what in self._accounts if what == COLD}
        for group in self.cold_reads.keys() - limited:
            del self.cold_reads[group]

    def close(self) -> None:
        """Limit nothing any more: what waits is done, for the node ends."""
        accounts, self._accounts = self._accounts, {}
        self.sends, self.limits_reads = {}, False
        for account in accounts.values():
            account.release()

    def limits(self, group: str, topic: str) -> bool:
        """Whether reads of a group in a topic are limited."""
        return bool(self._of(group, topic, cold=True))

    def limits_cold(self, group: str) -> bool:
        """Whether those reads of a group are that need more than memory."""
        return (Key(GROUP, group), COLD) in self._accounts

    def _of(self, group: str, topic: str, *, cold: bool) -> list[Account]:
        places = [(Key(TOPIC, topic), READS), (Key(GROUP, group), READS)]
        if cold:
            places.append((Key(GROUP, group), COLD))
        return [self._accounts[one] for one in places if one in self._accounts]

    async def acquire(
        self, group: str, topic: str, most_bytes: int, wait_s: float, *, cold: bool
    ) -> Permit | None:
        """Wait until a group may read in a topic.

        Args:
            group: Who reads.
            topic: What.
            most_bytes: What the read may bring.
            wait_s: How long it can wait; 0: not at all.
            cold: Whether it needs more than memory.

        Returns:
            A permit; None where there was none in time.
        """
        clock = asyncio.get_running_loop().time
        ends_s = clock() + wait_s
        woken_by: Account | None = None
        while True:
            accounts = self._of(group, topic, cold=cold)
            is_new = woken_by is None
            over = next(
                (
                    one
                    for one in accounts
                    if one.overdrawn or (is_new and one.waited_for)
                ),
                None,
            )
            permit = None
            if over is None:
                permit = Permit(accounts, most_bytes, partial(self._ended, group, cold))
            if woken_by not in (None, over):
                woken_by.pass_on()
            left_s = ends_s - clock()
            if over is None:
                return permit
            if is_new:
                over.throttled += 1
            if left_s <= 0 or self.waiting >= self._most_waiting:
                over.pass_on()
                return None
            self.waiting += 1
            try:
                await over.wait_until_even(left_s, again=over is woken_by)
            finally:
                self.waiting -= 1
            woken_by = over

    def _ended(self, group: str, cold: bool, size_bytes: int) -> None:
        """Keep what mqadmin's getColdDataFlowCtrInfo tells."""
        if not (cold and size_bytes and self.limits_cold(group)):
            return
        now_ms = self._now_ms()
        old = self.cold_reads.get(group)
        if old is None or now_ms - old.last_ms > COLD_FORGET_S * 1000:
            old = ColdRead(now_ms, now_ms, 0)
        window_ms = COLD_WINDOW_S * 1000
        is_same = now_ms // window_ms == old.last_ms // window_ms
        before = old.size_bytes if is_same else 0
        self.cold_reads[group] = ColdRead(old.since_ms, now_ms, before + size_bytes)


def _read(key: Key, text: str) -> Quota:
    try:
        return msgspec.json.decode(text, type=Quota)
    except UNREADABLE:
        # Somebody wrote it past the quota commands; no limit stops nobody.
        log.warning("a quota cannot be read and does not count", of=str(key))
        return Quota()


def _limits(key: Key, quota: Quota) -> Iterator[tuple[str, QuotaConfig]]:
    pairs = {
        SENDS: (quota.send_requests_per_s, quota.send_bytes_per_s),
        READS: (quota.read_requests_per_s, quota.read_bytes_per_s),
        COLD: (None, quota.cold_bytes_per_s),
    }
    for what, (requests, size_bytes) in pairs.items():
        if what in ALLOWED.get(key.kind, ()) and (requests or size_bytes):
            yield (
                what,
                QuotaConfig(
                    of=str(key),
                    requests_per_s=requests or None,
                    bytes_per_s=size_bytes or None,
                ),
            )


ALLOWED = {TOPIC: (SENDS, READS), GROUP: (READS, COLD)}
"""What can be limited, by the kind of what has the quota."""
