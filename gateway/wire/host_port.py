"""Addresses as text, `host:port`: in routes, in set-ups, and where clients connect to.

An IPv6 address stands in brackets, so that its colons are not the port's.
"""

from __future__ import annotations


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
