"""What clients may take: connections, requests and bytes of each, by token buckets.

Nothing is refused or dropped for a rate: what came is worked on and counted, and a
connection that takes of an overdrawn account is not read again before that is even. So
the rate holds on average, and the client notices by TCP's own back-pressure. An account
has one timer, and only while it is overdrawn; a message costs none.
"""

from __future__ import annotations

import asyncio
import ipaddress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from gateway.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acl.api import Principal
    from gateway.config import QuotaConfig

_EVERYBODY = "*"


class Counted(Protocol):
    """What is read from, or not."""

    active: bool

    def pause_or_resume(self) -> None:
        """Look again whether to read."""


class Bucket:
    """Tokens that come at a rate, up to a second's worth, and may be overdrawn.

    Args:
        rate: Tokens a second.
        now_s: The time.
    """

    __slots__ = ("_at_s", "_level", "_rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self._rate = self._level = rate
        self._at_s = now_s

    def take(self, count: float, now_s: float) -> float:
        """Take tokens, there or not; seconds until the bucket is not overdrawn."""
        level = self._level + (now_s - self._at_s) * self._rate
        self._level = min(level, self._rate) - count
        self._at_s = now_s
        return max(0.0, -self._level / self._rate)

    def is_full(self, now_s: float) -> bool:
        """Whether nothing distinguishes it from a new one."""
        self.take(0, now_s)
        return self._level == self._rate


class Account:
    """What one client, on all of its connections, has taken.

    Args:
        whose: For people.
        quota: What it may take.
    """

    def __init__(self, whose: str, quota: QuotaConfig) -> None:
        self._loop = asyncio.get_running_loop()
        self.whose = whose
        self.shares: set[Share] = set()
        self._most = quota.connections
        now_s = self._loop.time()
        rates = quota.requests_per_s, quota.bytes_per_s
        self._requests, self._bytes = (
            Bucket(rate, now_s) if rate else None for rate in rates
        )
        self._held_back: set[Share] = set()
        self._due: asyncio.TimerHandle | None = None

    def join(self, share: Share) -> bool:
        """Count a connection; False where one more is too many."""
        if self._most is not None and len(self.shares) >= self._most:
            return False
        self.shares.add(share)
        return True

    @property
    def unused(self) -> bool:
        """Whether nothing distinguishes it from a new one."""
        now_s = self._loop.time()
        buckets = self._requests, self._bytes
        return not self.shares and all(one.is_full(now_s) for one in buckets if one)

    def charge(self, share: Share, requests: int, size_bytes: int) -> None:
        """Count what a connection has taken, and hold it back where it is too much."""
        wait_s = self._take(requests, size_bytes)
        if wait_s > 0:
            self._held_back.add(share)
            share.hold_back()
            if self._due is None:
                self._due = self._loop.call_later(wait_s, self._look)

    def _take(self, requests: int, size_bytes: int) -> float:
        now_s = self._loop.time()
        wait_s = self._requests.take(requests, now_s) if self._requests else 0.0
        if self._bytes:
            wait_s = max(wait_s, self._bytes.take(size_bytes, now_s))
        return wait_s

    def _look(self) -> None:
        self._due = None
        if wait_s := self._take(0, 0):
            # Answers have been counted meanwhile.
            self._due = self._loop.call_later(wait_s, self._look)
            return
        held_back, self._held_back = self._held_back, set()
        for share in held_back:
            share.go_on()

    def leave(self, share: Share) -> None:
        """Forget a connection; what it has taken stays taken."""
        self.shares.discard(share)
        self._held_back.discard(share)
        if self._due is not None and not self._held_back:
            self._due.cancel()
            self._due = None


class Share:
    """One connection's part: which account counts what it takes, and if it is read.

    Args:
        quotas: Know the accounts.
        address: Where it comes from.
        connection: The connection.
    """

    def __init__(self, quotas: Quotas, address: str, connection: Counted) -> None:
        self._quotas = quotas
        self._address = address
        self._connection = connection
        self._account: Account | None = None
        self._principal: Principal | None = None
        self.held_back = False
        """Whether its account is overdrawn, so nothing is read."""

    def belongs_to(self, connection: Counted) -> None:
        """The connection is read by something else from now on."""
        self._connection = connection

    def charge(self, requests: int, size_bytes: int) -> None:
        """Count what the connection has taken."""
        if self._account is not None:
            self._account.charge(self, requests, size_bytes)

    def begin(self) -> bool:
        """Count it as its address'; False where one more is too many."""
        return self._use(self._quotas.of_address(self._address))

    def is_of(self, principal: Principal) -> bool:
        """Count it as somebody's; False where one more is too many."""
        if principal is self._principal:
            return True
        account = self._quotas.of_principal(str(principal))
        if not self._use(account or self._quotas.of_address(self._address)):
            return False
        self._principal = principal
        return True

    def leave(self) -> None:
        """Count nothing any more."""
        self._use(None)

    def _use(self, account: Account | None) -> bool:
        old = self._account
        if account is old:
            return True
        if account is not None and not account.join(self):
            return False
        self._account = account
        if old is not None:
            old.leave(self)
            if self.held_back:
                self.go_on()
        return True

    def hold_back(self) -> None:
        """Read nothing more: what its client may take in this time is taken."""
        if not self.held_back:
            self.held_back = True
            self._connection.pause_or_resume()

    def go_on(self) -> None:
        """Read again."""
        self.held_back = False
        # It was silent on our behalf.
        self._connection.active = True
        self._connection.pause_or_resume()


class Quotas:
    """The accounts of a node's clients.

    Args:
        rules: Whose account has which quota; the first that is meant counts.
        by_principal: Whether clients say who they are; where none has to, `*` means
            each address, and otherwise each principal.

    Raises:
        ConfigError: A rule means nobody.
    """

    def __init__(self, rules: Sequence[QuotaConfig], *, by_principal: bool) -> None:
        self._rules = [(one, _network(one.of)) for one in rules]
        self._by_principal = by_principal
        self._accounts: dict[tuple[str, str], Account] = {}

    def of_address(self, host: str) -> Account | None:
        """The account of who connects from an address; None where no rule means it."""
        address = ipaddress.ip_address(host)
        for rule, network in self._rules:
            if network is not None:
                meant = address.version == network.version and address in network
            else:
                meant = rule.of == _EVERYBODY and not self._by_principal
            if meant:
                return self._account("address", host, rule)
        return None

    def of_principal(self, name: str) -> Account | None:
        """The account of a principal; None where no rule means it."""
        for rule, network in self._rules:
            if network is None and fnmatchcase(name, rule.of):
                return self._account("principal", name, rule)
        return None

    def _account(self, kind: str, whose: str, rule: QuotaConfig) -> Account:
        account = self._accounts.get((kind, whose))
        if account is None:
            account = self._accounts[kind, whose] = Account(whose, rule)
        return account

    def forget(self) -> None:
        """Forget the accounts of who has left, once what they took no longer counts."""
        self._accounts = {
            key: account
            for key, account in self._accounts.items()
            if not account.unused
        }


def _network(of: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The addresses that a rule means; None where it means principals."""
    try:
        return ipaddress.ip_network(of, strict=False)
    except ValueError:
        if of != _EVERYBODY and ":" not in of:
            raise ConfigError(
                f"quotas: of is {of!r}; allowed: *, an address, a network, or a "
                "principal as HOOK:NAME, where * stands for any text"
            ) from None
        return None
