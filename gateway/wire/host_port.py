"""Addresses as text, `host:port`: in routes, in set-ups, and where clients connect to.

An IPv6 address stands in brackets, so that its colons are not the port's.
"""

from __future__ import annotations

import ipaddress

_IPV4 = 4
_IPV6_PREFIX = 64
_MOST_NAME = 255


def join(host: str, port: int) -> str:
    """The text of an address.

    Args:
        host: A name or an address, without brackets.
        port: 0 to 65535.
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(address: str) -> tuple[str, int]:
    """Take the text of an address apart.

    Raises:
        ValueError: There is no port, or it is no number.
    """
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def network(address: str) -> str:
    """What one client has of addresses: the address, of IPv6 the network of 64 bits.

    Whoever has one address of IPv6 has as many.
    """
    try:
        if ipaddress.ip_address(address).version == _IPV4:
            return address
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    except ValueError:
        return address[:_MOST_NAME]


def plain_ip(host: str) -> str:
    """The address of a client as a socket has it, in the shortest form.

    Without the interface of a link-local address; and a client of a dual-stack socket
    that is called ::ffff:1.2.3.4 there is an IPv4 one.

    Raises:
        ValueError: It is no IP address.
    """
    ip = ipaddress.ip_address(host.partition("%")[0])
    return str(getattr(ip, "ipv4_mapped", None) or ip)
