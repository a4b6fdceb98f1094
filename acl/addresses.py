"""Rules for IP addresses: those of ACL 1.0 with wildcards, those of 2.0 as networks."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_BRACES = re.compile(r"([0-9A-Fa-f.:]*)\{([0-9A-Fa-f.*:,\s-]+)\}")
_MOST_ALTERNATIVES = 256


class AddressError(ValueError):
    """A text is no rule for addresses; it says what came and what is allowed."""


def parse_plain(text: str) -> Callable[[str], bool]:
    """Read an address rule of ACL 1.0.

    `*` is every address, nothing is none. Others name IPv4 or IPv6 addresses, of which
    each number may be `*` or a range like 1-20, and the last may be alternatives in
    braces. Several may stand with commas in between, and networks are understood, too.

    Raises:
        AddressError: The text is none.

    Source: RemoteAddressStrategyFactory.java, RocketMQ 4.9.7.
    """
    text = text.strip()
    if not text:
        return _nowhere
    if text in {"*", "*.*.*.*", "*:*:*:*:*:*:*:*"}:
        return _everywhere
    rules = [_one(part) for part in _alternatives(text)]
    return lambda address: any(rule(address) for rule in rules)


def _nowhere(_: str) -> bool:
    return False


def _everywhere(_: str) -> bool:
    return True


def _alternatives(text: str) -> list[str]:
    if braces := _BRACES.fullmatch(text):
        parts = [f"{braces[1]}{one.strip()}" for one in braces[2].split(",")]
    else:
        parts = [one.strip() for one in text.split(",")]
    if len(parts) > _MOST_ALTERNATIVES or not all(parts):
        raise _not_a_rule(text)
    return parts


def _one(text: str) -> Callable[[str], bool]:
    if "*" not in text and "-" not in text:
        return parse_networks([text])
    is_v6 = ":" in text
    count, base, most = (8, 16, 0xFFFF) if is_v6 else (4, 10, 255)
    parts = _expand(text).split(":") if is_v6 else text.split(".")
    # A star at the end stands for all that is left out: 10.0.*
    if parts[-1] == "*":
        parts += ["*"] * (count - len(parts))
    if len(parts) != count:
        raise _not_a_rule(text)
    spans = [_span(part, base, most, text) for part in parts]

    def matches(address: str) -> bool:
        numbers = _numbers(address)
        return len(numbers) == count and all(
            low <= number <= high
            for number, (low, high) in zip(numbers, spans, strict=True)
        )

    return matches


def _expand(text: str) -> str:
    """An IPv6 rule with the zeros that :: stands for."""
    if "::" not in text:
        return text
    head, _, tail = text.partition("::")
    before, after = head.split(":") if head else [], tail.split(":") if tail else []
    return ":".join([*before, *["0"] * (8 - len(before) - len(after)), *after])


def _span(part: str, base: int, most: int, text: str) -> tuple[int, int]:
    if part == "*":
        return 0, most
    low, _, high = part.partition("-")
    try:
        first, last = int(low, base), int(high or low, base)
    except ValueError as error:
        raise _not_a_rule(text) from error
    if not 0 <= first <= last <= most:
        raise _not_a_rule(text)
    return first, last


@lru_cache(maxsize=4096)
def _numbers(address: str) -> tuple[int, ...]:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return ()
    if ip.version == 4:  # noqa: PLR2004 - the version's number
        return tuple(ip.packed)
    return tuple(int(part, 16) for part in ip.exploded.split(":"))


def parse_networks(texts: Iterable[str]) -> Callable[[str], bool]:
    """Read addresses and networks in CIDR notation; the rule is that one has it.

    Raises:
        AddressError: One is neither.
    """
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError as error:
            raise _not_a_rule(text) from error

    def matches(address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in networks)

    return matches


def _not_a_rule(text: str) -> AddressError:
    return AddressError(
        f"address {text!r:.80}; allowed: *, an IP address, a network like 10.0.0.0/8, "
        "or an address with * or ranges like 1-20 for numbers"
    )
