"""OAuth2 client credentials: a token of an issuer, renewed before it ends.

Source: RFC 6749, 4.4; the file of credentials is the one of Pulsar's own clients
(KeyFile.java, Pulsar 4.0.8), and the token is shown to brokers like any other.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import aiohttp
import msgspec
import structlog
from msgspec import Meta, Struct

from ropeway.common.reasons import reason_of
from ropeway.storage.pulsar.authentication import secret
from ropeway.storage.pulsar.errors import PulsarUnavailableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

TIMEOUT_S = 10.0
"""For the issuer's two answers together."""
RENEWED_AFTER = 0.8
"""So much of its time a token is used; in the rest an issuer may be away."""
DEFAULT_S = 60.0
"""A token's time where the issuer does not say it."""
RETRY_S = 1.0
"""An issuer that failed is left alone for so long."""
METADATA = ".well-known/openid-configuration"

_log = structlog.get_logger()


class OAuth2Settings(Struct, frozen=True, kw_only=True):
    """Where a token comes from."""

    issuer_url: str
    """The issuer: `https://host/path`; its metadata names the token end point."""
    credentials_file: str
    """JSON with `client_id` and `client_secret`, read anew for each token."""
    audience: str | None = None
    """What the token is for, where the issuer asks for it."""
    scope: str | None = None
    """What it is to allow, likewise; several with spaces between."""
    tls_ca_file: str | None = None
    """Who signed the issuer's certificate; None for whom the system trusts."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, in words."""
        if not self.issuer_url.startswith(("https://", "http://")):
            raise ValueError(
                f"oauth2.issuer_url is {self.issuer_url!r}; allowed: https://host[/path]"
            )


class _Credentials(Struct, frozen=True):
    client_id: str
    client_secret: str
    type: Literal["client_credentials"] = "client_credentials"


class _Metadata(Struct, frozen=True):
    token_endpoint: str


class _Answer(Struct, frozen=True):
    access_token: str
    expires_in: Annotated[float, Meta(gt=0)] = DEFAULT_S


class _Refusal(Struct, frozen=True):
    error: str = ""


class OAuth2:
    """Tokens of one issuer, each used by all connections.

    Args:
        settings: Where they come from.
        tls: Whom to trust; asked for each token.
    """

    method = "token"

    def __init__(
        self, settings: OAuth2Settings, tls: Callable[[], ssl.SSLContext]
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._turn = asyncio.Lock()
        self._token = b""
        self._renew_at = self._ends_at = self._again_at = 0.0
        self._failure = ""

    async def proof(self) -> bytes:
        """The token, a new one where the last nears its end or was refused.

        Raises:
            PulsarUnavailableError: There is none, and the issuer gives none.
        """
        async with self._turn:
            now = time.monotonic()
            if now >= self._renew_at and now >= self._again_at:
                renewed = await self._renew()
                if renewed:
                    return self._token
                if now < self._ends_at:
                    _log.warning("no new OAuth2 token yet", reason=self._failure)
            if now < self._ends_at:
                return self._token
            raise PulsarUnavailableError(f"no OAuth2 token: {self._failure}")

    def refused(self, proof: bytes) -> None:
        """Ask for another one next time; others may have one already."""
        if proof == self._token:
            self._renew_at = self._ends_at = 0.0

    async def _renew(self) -> bool:
        """Ask the issuer; where that fails, the token that there is stays."""
        began = time.monotonic()
        try:
            answer = await self._ask()
        except (aiohttp.ClientError, TimeoutError) as error:
            self._fail(
                f"{self._settings.issuer_url} does not answer: {reason_of(error)}"
            )
        except PulsarUnavailableError as error:
            self._fail(str(error))
        else:
            self._token = answer.access_token.encode()
            self._renew_at = began + RENEWED_AFTER * answer.expires_in
            self._ends_at = began + answer.expires_in
            return True
        return False

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._again_at = time.monotonic() + RETRY_S

    async def _ask(self) -> _Answer:
        given = self._settings
        found = self._credentials()
        form = {
            "grant_type": "client_credentials",
            "client_id": found.client_id,
            "client_secret": found.client_secret,
            "audience": given.audience,
            "scope": given.scope,
        }
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        connector = aiohttp.TCPConnector(ssl=self._tls())
        async with (
            asyncio.timeout(TIMEOUT_S),
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        ):
            where = f"{given.issuer_url.rstrip('/')}/{METADATA}"
            end_point = (await _answer(session, "GET", where, _Metadata)).token_endpoint
            if not end_point.startswith(given.issuer_url.partition("://")[0] + "://"):
                raise PulsarUnavailableError(
                    f"{where} names the token end point {end_point}; allowed: one with "
                    "the issuer's scheme"
                )
            form_given = {name: value for name, value in form.items() if value}
            answer: _Answer = await _answer(
                session, "POST", end_point, _Answer, form_given
            )
        secret("the OAuth2 token", lambda: answer.access_token)
        return answer

    def _credentials(self) -> _Credentials:
        path = Path(self._settings.credentials_file)
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Credentials)
        except (OSError, msgspec.DecodeError) as error:
            raise PulsarUnavailableError(
                f"cannot use oauth2.credentials_file {path}: {reason_of(error)}; "
                "allowed: JSON with client_id and client_secret"
            ) from error


async def _answer(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    kind: Any,
    form: dict[str, str] | None = None,
) -> Any:
    """What an issuer answers; redirects are not followed, for they get our secret."""
    async with session.request(
        method, url, data=form, allow_redirects=False
    ) as response:
        answer = await response.read()
    if response.status != HTTPStatus.OK:
        # Its own words, but for a code of the RFC, could be anything, our secret too.
        raise PulsarUnavailableError(f"{url} answers {response.status}{_code(answer)}")
    try:
        # Some say the seconds as text.
        return msgspec.json.decode(answer, type=kind, strict=False)
    except msgspec.DecodeError as error:
        raise PulsarUnavailableError(f"{url} answers: {error}") from error


def _code(answer: bytes) -> str:
    """The error code of a refusal (RFC 6749, 5.2); nothing where there is none."""
    try:
        code = msgspec.json.decode(answer, type=_Refusal).error
    except msgspec.DecodeError:
        return ""
    return f" {code[:80]}" if code.replace("_", "").isalpha() else ""
