"""Secrets encrypted at rest: Fernet (AES-128-CBC and HMAC-SHA256), of `cryptography`.

Keys come from a file or from the environment, one a line: the first one seals, each one
unseals. So a key is changed by putting a new one in front of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from ropeway.acl.api import VaultError

if TYPE_CHECKING:
    from collections.abc import Sequence


def new_key() -> str:
    """A key for a vault."""
    return Fernet.generate_key().decode()


class FernetVault:
    """Seals with the first of its keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Take the keys.

        Raises:
            VaultError: There is none, or one is not a key.
        """
        if not keys:
            raise VaultError("no key; make one with: ropeway acl key")
        try:
            self._fernet = MultiFernet([Fernet(one) for one in keys])
        except (ValueError, TypeError) as error:
            raise VaultError(
                f"{len(keys)} keys, and one is not 32 bytes in URL-safe base64; "
                "make one with: ropeway acl key"
            ) from error

    def __repr__(self) -> str:
        return "FernetVault()"

    def seal(self, secret: str) -> str:
        """Encrypt a secret."""
        return self._fernet.encrypt(secret.encode()).decode()

    def unseal(self, sealed: str) -> str:
        """Decrypt what `seal` made."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except (InvalidToken, ValueError, TypeError):
            raise VaultError(
                "a secret was sealed with another key, or is damaged"
            ) from None


class NoVault:
    """What stands for a vault where no key is configured."""

    def seal(self, secret: str) -> str:
        """There is nothing to encrypt with."""
        del secret
        raise VaultError(_NO_KEY)

    def unseal(self, sealed: str) -> str:
        """There is nothing to decrypt with."""
        del sealed
        raise VaultError(_NO_KEY)


_NO_KEY = (
    "no key for secrets is configured; acl.key_file or ROPEWAY_ACL_KEY has one, and "
    "`ropeway acl key` makes one"
)
