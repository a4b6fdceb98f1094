"""What clients may take: connections, requests and bytes of each.

Which account counts what a connection takes is told here; how accounts count, and hold
back who takes too much, in `gateway.node.accounts`. A connection that is not read
notices by TCP's own back-pressure.
"""

from __future__ import annotations

import ipaddress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from ropeway.gateway.config import ConfigError
from ropeway.gateway.node.accounts import Account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.config import QuotaConfig

_EVERYBODY = "*"


class Counted(Protocol):
    """What is read from, or not."""

    active: bool

    def pause_or_resume(self) -> None:
        """Look again whether to read."""


class ClientAccount(Account):
    """What one client, on all of its connections, has taken.

    Args:
        whose: For people.
        quota: What it may take.
    """

    def __init__(self, whose: str, quota: QuotaConfig) -> None:
        super().__init__(whose, quota)
        self.shares: set[Share] = set()

    def join(self, share: Share) -> bool:
        """Count a connection; False where one more is too many."""
        most = self.quota.connections
        if most is not None and len(self.shares) >= most:
            return False
        self.shares.add(share)
        return True

    def part(self, share: Share) -> None:
        """Forget a connection; what it has taken stays taken."""
        self.shares.discard(share)
        self.leave(share)

    @property
    def unused(self) -> bool:
        """Whether nothing distinguishes it from a new one."""
        return not self.shares and self.is_full


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
        self._account: ClientAccount | None = None
        self._principal: Principal | None = None
        self._holding: set[Account] = set()

    @property
    def held_back(self) -> bool:
        """Whether an account is overdrawn that it takes of, so nothing is read."""
        return bool(self._holding)

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
        for account in list(self._holding):
            account.leave(self)
            self.go_on(account)

    def _use(self, account: ClientAccount | None) -> bool:
        old = self._account
        if account is old:
            return True
        if account is not None and not account.join(self):
            return False
        self._account = account
        if old is not None:
            old.part(self)
            self.go_on(old)
        return True

    def hold_back(self, account: Account) -> None:
        """Read nothing more: what may be taken in this time is taken."""
        if account not in self._holding:
            self._holding.add(account)
            self._connection.pause_or_resume()

    def go_on(self, account: Account) -> None:
        """Read again, unless another account is overdrawn, too."""
        if account in self._holding:
            self._holding.remove(account)
            # It was silent on our behalf.
            self._connection.active = True
            self._connection.pause_or_resume()


class Limitable(Counted, Protocol):
    """A connection that gets its share when it is first held back."""

    source: Source
    share: Share | None


def share_of(connection: Limitable) -> Share:
    """A connection's share; where clients have no quotas, one that counts nothing."""
    if connection.share is None:
        address = connection.source.address
        connection.share = Share(Quotas((), by_principal=False), address, connection)
    return connection.share


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
        self._accounts: dict[tuple[str, str], ClientAccount] = {}

    def of_address(self, host: str) -> ClientAccount | None:
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

    def of_principal(self, name: str) -> ClientAccount | None:
        """The account of a principal; None where no rule means it."""
        for rule, network in self._rules:
            if network is None and fnmatchcase(name, rule.of):
                return self._account("principal", name, rule)
        return None

    def _account(self, kind: str, whose: str, rule: QuotaConfig) -> ClientAccount:
        account = self._accounts.get((kind, whose))
        if account is None:
            account = self._accounts[kind, whose] = ClientAccount(whose, rule)
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
