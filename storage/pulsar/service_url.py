"""Service URLs: where a Pulsar cluster or broker is."""

from typing import NamedTuple
from urllib.parse import urlsplit

PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}


class Address(NamedTuple):
    """Where a broker or proxy listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """As URLs have it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class ServiceUrl(NamedTuple):
    """Brokers, any of which can be asked, and how to speak to them."""

    tls: bool
    addresses: list[Address]

    @classmethod
    def parse(cls, url: str) -> "ServiceUrl":
        """Read `pulsar://host[:port][,host[:port]...]`; `pulsar+ssl` is with TLS.

        Raises:
            ValueError: it has another form.
        """
        scheme, separator, rest = url.partition("://")
        hosts = rest.rstrip("/")
        if not separator or scheme not in PORTS or not hosts or "/" in hosts:
            raise ValueError(f"service URL {url!r}; allowed: {FORMS}")
        addresses = [_address(scheme, host, url) for host in hosts.split(",")]
        return cls(scheme == "pulsar+ssl", addresses)


FORMS = "pulsar://host[:port][,host[:port]...], or pulsar+ssl:// for TLS"


def _address(scheme: str, host: str, url: str) -> Address:
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port or PORTS[scheme]
    except ValueError as error:
        raise ValueError(f"service URL {url!r}; allowed: {FORMS}") from error
    if not parts.hostname or parts.username is not None:
        raise ValueError(f"service URL {url!r}; allowed: {FORMS}")
    return Address(parts.hostname, port)
