"""A certificate that a node makes for itself, for clients that verify none.

RocketMQ's gRPC clients use TLS unless told otherwise, and do not look at who signed the
certificate; its proxy makes itself one for them likewise. It proves nothing: who wants
to know whom a client speaks to gives the node one of its own (the table `tls`).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ropeway.storage import private

if TYPE_CHECKING:
    from pathlib import Path

_VALID = dt.timedelta(days=3650)
_CLOCKS_DIFFER = dt.timedelta(days=1)


def make(path: Path) -> None:
    """Make a key and its certificate, in one file that the owner alone may read.

    A power cut may leave a file that cannot be used: make it again then.

    Raises:
        OSError: It cannot be written.
    """
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb", opener=private.opener) as file:
        file.write(_pem())
    new.replace(path)


def _pem() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ropeway")])
    local = ipaddress.ip_address("127.0.0.1")
    names = [x509.DNSName("localhost"), x509.IPAddress(local)]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return secret + certificate.public_bytes(serialization.Encoding.PEM)
