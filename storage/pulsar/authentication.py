"""Who we are to Pulsar: what is shown to its brokers and to its admin REST alike."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Protocol

from ropeway.common.reasons import reason_of
from ropeway.storage.pulsar.errors import PulsarUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD_HEADER = "X-Pulsar-Auth-Method-Name"
"""Which provider the admin REST asks; without it, all of them one after the other.
Source: AuthenticationService.java, Pulsar 4.0.8."""


class Authentication(Protocol):
    """One way to say who we are."""

    @property
    def method(self) -> str:
        """Pulsar's name of it (`getAuthMethodName` of its provider)."""

    async def proof(self) -> bytes:
        """What to show now.

        Raises:
            PulsarUnavailableError: It cannot be had at the moment.
        """

    def refused(self, proof: bytes) -> None:
        """Take note that Pulsar does not accept this any more."""


class Unauthenticated:
    """Nothing is shown, or nothing but the certificate of the TLS connection.

    Args:
        method: `none`, or `tls` where a certificate says who we are.
    """

    def __init__(self, method: str = "none") -> None:
        self.method = method

    async def proof(self) -> bytes:
        """Nothing."""
        return b""

    def refused(self, proof: bytes) -> None:
        """There is no other."""


class Token:
    """A token (JWT), read anew each time.

    Args:
        read: Reads it.
    """

    method = "token"

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    async def proof(self) -> bytes:
        """The token as it is now."""
        return secret("the token", self._read)

    def refused(self, proof: bytes) -> None:
        """The next one is read anew, too."""


class Basic:
    """A user and a password, which is read anew each time.

    Args:
        user: Its name; without a colon.
        read: Reads the password.
    """

    method = "basic"

    def __init__(self, user: str, read: Callable[[], str]) -> None:
        self._user = user
        self._read = read

    async def proof(self) -> bytes:
        """Both, as Pulsar's provider parts them.

        Source: AuthenticationDataBasic.java, Pulsar 4.0.8.
        """
        return self._user.encode() + b":" + secret("the password", self._read)

    def refused(self, proof: bytes) -> None:
        """The next one is read anew, too."""


def secret(what: str, read: Callable[[], str]) -> bytes:
    """Read what is shown, and see that it can be; no error says what it is.

    Raises:
        PulsarUnavailableError: It cannot be read, as while it is written anew.
    """
    try:
        text = read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PulsarUnavailableError(
            f"cannot read {what}: {reason_of(error)}"
        ) from error
    if not text or not text.isprintable():
        raise PulsarUnavailableError(
            f"cannot use {what}: {len(text)} characters; allowed: one line of printable"
            " ones"
        )
    return text.encode()


def headers(authentication: Authentication, proof: bytes) -> dict[str, str]:
    """How a request to the admin REST shows a proof."""
    method = authentication.method
    shown = {} if method == "none" else {METHOD_HEADER: method}
    if method == "token":
        shown["Authorization"] = f"Bearer {proof.decode()}"
    elif method == "basic":
        shown["Authorization"] = f"Basic {base64.b64encode(proof).decode()}"
    return shown
