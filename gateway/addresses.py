"""The address that clients are told where a listener is on every address."""

from __future__ import annotations

import ipaddress
import socket

from ropeway.gateway.config import ConfigError, ListenerConfig

_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Documentation addresses (RFC 5737, RFC 3849). Nothing is sent to them."""


def is_everywhere(config: ListenerConfig) -> bool:
    """Whether a listener is on every address and does not say which one to use."""
    if config.advertised_host is not None:
        return False
    try:
        return ipaddress.ip_address(config.host).is_unspecified
    except ValueError:
        return False


def outgoing(host: str) -> str:
    """This machine's address on the way out, for a host like 0.0.0.0 or `::`.

    Raises:
        ConfigError: There is no way out, so the address has to be given.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket only chooses the way.
            probe.connect((_ELSEWHERE[family], 9))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise ConfigError(
            f"listening on every address ({host}), and none can be found to tell "
            "clients; allowed: --listen HOST:PORT=ADVERTISED_HOST:PORT"
        ) from error
