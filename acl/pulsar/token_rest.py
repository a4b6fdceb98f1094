"""Asking Pulsar's admin REST with a token of the hook's own."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 5.0
"""Of each host. A client's request waits for it: less than the 15 s that Java clients
connect for."""
_REDIRECTS = 5


class TokenRest:
    """A cluster's admin REST, as `PulsarAdmin` of `ropeway.acl.api`.

    Args:
        url: `http://host:port`, or several hosts with commas between.
        token_file: Our own token, read anew each time; None: it is `token`.
        token: Our own token; None without.
        ca_certificate: Who signed the servers' certificates; None: the system's.

    Raises:
        OSError: `ca_certificate` cannot be used.
    """

    def __init__(
        self,
        url: str,
        token_file: Path | None,
        token: str | None,
        ca_certificate: Path | None,
    ) -> None:
        scheme, _, hosts = url.partition("://")
        self._bases = [f"{scheme}://{host.strip('/')}" for host in hosts.split(",")]
        self._token_file = token_file
        self._token = token
        self._tls = (
            ssl.create_default_context(cafile=ca_certificate)
            if ca_certificate
            else None
        )
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Ask the first of the hosts that answers."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
            )
        headers = self._headers()
        failure: Exception | None = None
        for base in list(self._bases):
            try:
                return await self._ask(f"{base}/admin/v2/{path}", headers)
            except (aiohttp.ClientError, OSError) as error:  # as TimeoutError is
                failure = error
                # The next one begins with a host that may be up.
                self._bases.remove(base)
                self._bases.append(base)
        raise ConnectionError(str(failure) or "no answer in time") from failure

    def _headers(self) -> dict[str, str]:
        token = self._token
        if self._token_file is not None:
            try:
                token = self._token_file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise OSError(
                    f"{self._token_file} has no token: {reason_of(error)}"
                ) from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def _ask(self, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
        assert self._session is not None, "made before it is used"
        async with self._session.get(
            URL(url, encoded=True),
            headers=headers,
            max_redirects=_REDIRECTS,
            ssl=self._tls if self._tls is not None else True,
        ) as response:
            return response.status, await response.read()
