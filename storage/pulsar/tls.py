"""TLS to Pulsar: whom we trust and what we show, as their files say now."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import structlog

from ropeway.common.reasons import reason_of

_NO_PASSPHRASE = ""
"""Without an answer at hand, OpenSSL would ask for it on the terminal, and wait."""

_CERTIFICATE_ALERT = re.compile(r"ALERT_(BAD_CERTIFICATE|CERTIFICATE_\w+|UNKNOWN_CA)")
"""Of RFC 8446, 6.2, as OpenSSL names them: what a server says of a client's
certificate. Jetty says `bad certificate` where there is none."""

_log = structlog.get_logger()

_Stamp = tuple[tuple[int, int, int], ...]


class TlsFiles:
    """A context for each new connection, made anew when a file was replaced.

    Files that cannot be used, as those of which only one is new, change nothing until
    they can be.

    Args:
        ca: Certificates of authorities to trust, PEM; None for the system's.
        certificate: What servers are shown, PEM; None for nothing.
        key: The certificate's, PEM without a passphrase.

    Raises:
        OSError: A file cannot be read, or is not what it should be; names the file.
    """

    def __init__(
        self, ca: str | None, certificate: str | None = None, key: str | None = None
    ) -> None:
        self._ca, self._certificate, self._key = ca, certificate, key
        self._stamp = self._look()
        self._context = self._read()

    def __call__(self) -> ssl.SSLContext:
        """The context of one more connection."""
        # Before they are read: what is written meanwhile is a change of its own.
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._context = self._read()
            except OSError as error:
                _log.warning(
                    "new files not used, the old stay", reason=reason_of(error)
                )
        return self._context

    def _look(self) -> _Stamp:
        files = (self._ca, self._certificate, self._key)
        return tuple(_stamp_of(one) for one in files if one is not None)

    def _read(self) -> ssl.SSLContext:
        what = self._ca or "the system's certificates"
        try:
            context = ssl.create_default_context(cafile=self._ca)
            if self._certificate is not None:
                what = f"{self._certificate} with the key {self._key}"
                context.load_cert_chain(self._certificate, self._key, _NO_PASSPHRASE)
        except OSError as error:  # as ssl.SSLError is
            raise OSError(f"cannot use {what}: {reason_of(error)}") from error
        return context


def explained(failure: str) -> str:
    """Add what to do to why a connection failed, where our certificate is why."""
    if _CERTIFICATE_ALERT.search(failure) is None:
        return failure
    settings = "the settings certificate and key of [pulsar]"
    return f"Pulsar demands a certificate that it trusts, see {settings}: {failure}"


def _stamp_of(file: str) -> tuple[int, int, int]:
    """What differs once a file was written or another has taken its place."""
    try:
        found = Path(file).stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
