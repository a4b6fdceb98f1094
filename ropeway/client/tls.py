"""TLS of clients from files: whom they trust, and who they are."""

from __future__ import annotations

import ssl

from msgspec import Struct

from ropeway.common.reasons import reason_of

_NO_PASSPHRASE = ""
"""Without an answer at hand, OpenSSL would ask for it on the terminal, and wait."""


class TlsFiles(Struct, frozen=True, kw_only=True):
    """What a client needs to speak TLS; all of it may be left to the system."""

    ca: str | None = None
    """A PEM file with the certificates that are trusted; None for the system's."""
    certificate: str | None = None
    """A PEM file with the client's certificate, for servers that want one."""
    key: str | None = None
    """Its key; None where the certificate's file has it, too."""

    def context(self) -> ssl.SSLContext:
        """Read the files.

        Raises:
            ValueError: One cannot be used; says which.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise ValueError(_unusable(str(self.ca), error)) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, _NO_PASSPHRASE)
            except OSError as error:
                files = " and ".join(filter(None, (self.certificate, self.key)))
                raise ValueError(_unusable(files, error)) from error
        return context


def _unusable(files: str, error: OSError) -> str:
    return (
        f"{files} cannot be used: {reason_of(error)}; allowed: PEM files, a key "
        "without a passphrase"
    )


def tls_failure(error: object) -> str | None:
    """Say why TLS failed; None where it was something else that failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not trusted: {error.verify_message}"
    return f"TLS failed: {error.reason}" if isinstance(error, ssl.SSLError) else None
