"""The two ways into one Pulsar cluster, brokers and admin REST, as its settings say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.authentication import (
    Authentication,
    Basic,
    Token,
    Unauthenticated,
)
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.oauth2 import OAuth2
from ropeway.storage.pulsar.rest import TIMEOUT_S
from ropeway.storage.pulsar.tls import TlsFiles

if TYPE_CHECKING:
    from ropeway.storage.pulsar.pulsar_id import Expected
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings


class Cluster(NamedTuple):
    """One cluster; whoever opens it closes it."""

    admin: Admin
    client: PulsarClient

    async def expect(self, expected: Expected | None) -> None:
        """Ask only who shows that it is of this Pulsar cluster; None: anybody."""
        self.admin.expected = self.client.expected = expected
        await self.admin.look_at_hosts()

    @property
    def pulsar_id(self) -> str | None:
        """Which Pulsar cluster that is; None where it cannot be told from others."""
        expected = self.client.expected
        return None if expected is None else expected.pulsar_id

    async def close(self) -> None:
        """Close both."""
        await self.client.close()
        await self.admin.close()


def open_admin(settings: PulsarLogSettings, timeout_s: float = TIMEOUT_S) -> Admin:
    """Be ready to ask the admin REST of the settings; whoever opens it closes it.

    Args:
        settings: Where it is, and who we are.
        timeout_s: How long each host may take.

    Raises:
        OSError: A certificate or its key cannot be used.
    """
    return Admin(
        settings.admin_url,
        authentication=authentication(settings),
        tls=_tls(settings),
        timeout_s=timeout_s,
    )


def open_cluster(settings: PulsarLogSettings, request_timeout_s: float) -> Cluster:
    """Be ready to speak to the cluster of the settings; nobody is connected to yet.

    Args:
        settings: Where it is, and who we are.
        request_timeout_s: How long to wait for a broker's answer.

    Raises:
        OSError: A certificate or its key cannot be used.
    """
    who, tls = authentication(settings), _tls(settings)
    return Cluster(
        Admin(settings.admin_url, authentication=who, tls=tls),
        PulsarClient(
            settings.service_url,
            authentication=who,
            tls=tls,
            listener_name=settings.listener_name,
            request_timeout_s=request_timeout_s,
            keep_alive_s=settings.keep_alive_ms / 1000,
        ),
    )


def _tls(settings: PulsarLogSettings) -> TlsFiles | None:
    files = settings.tls_ca_file, settings.certificate, settings.key
    is_plain = settings.service_url.startswith("pulsar://")
    if is_plain and settings.admin_url.startswith("http://") and not any(files):
        return None  # To read all authorities of the system takes a while.
    return TlsFiles(*files)


def authentication(settings: PulsarLogSettings) -> Authentication:
    """What the settings say who we are.

    Raises:
        OSError: Who signed an issuer's certificate cannot be read.
    """
    token = settings.token
    if settings.user is not None:
        assert settings.password_file is not None, "they go together"
        password = Path(settings.password_file)
        return Basic(settings.user, lambda: password.read_text(encoding="utf-8"))
    if settings.oauth2 is not None:
        return OAuth2(settings.oauth2, TlsFiles(settings.oauth2.tls_ca_file))
    if token is not None:
        return Token(token)
    return Unauthenticated("none" if settings.certificate is None else "tls")
