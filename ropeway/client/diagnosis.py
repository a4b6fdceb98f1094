"""Why a server did not do what was asked: not allowed, TLS, or nobody there.

A failed request says little: a node that requires TLS only closes the connection. So
the address is tried again, with TLS and without.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.common.reasons import reason_of
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.client.config import ClientConfig
    from ropeway.client.errors import RemotingError

_LOOK_S = 1.0
"""How long to wait for a server to close a connection that it does not want."""
_HOSTNAME_MISMATCH = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class Reason(StrEnum):
    """What is wrong."""

    NOT_ALLOWED = "not allowed"
    TLS_WANTED = "TLS wanted"
    NO_TLS = "no TLS"
    WRONG_HOST = "wrong host"
    UNTRUSTED = "not trusted"
    CERTIFICATE_WANTED = "certificate wanted"
    NOBODY = "nobody listens"
    UNKNOWN_HOST = "unknown host"
    SILENT = "no answer"


_ACL_EXCEPTION = re.compile(r"\bAclException: (.*?)(?:, org\.apache\.|$)").search
_NOT_THERE = (Reason.NOBODY, Reason.UNKNOWN_HOST, Reason.SILENT)


class Diagnosis(Struct, frozen=True):
    """What is wrong, and what to do about it."""

    reason: Reason
    address: str
    """Of the server, as `host:port`."""
    text: str
    advice: str

    @property
    def is_of_access(self) -> bool:
        """Whether the server is there, and wants other credentials or other TLS."""
        return self.reason not in _NOT_THERE


async def diagnose(error: RemotingError, config: ClientConfig) -> Diagnosis | None:
    """Find out why a request failed.

    Args:
        error: How it failed.
        config: Of the client that it failed for.

    Returns:
        None where there is no more to say than the error does.
    """
    if isinstance(error, ResponseError):
        found = refusal(error)
        if found is None:
            return None
        return Diagnosis(
            Reason.NOT_ALLOWED,
            error.address,
            f"not allowed: {found}",
            "`ropeway context show` prints the credentials in use",
        )
    if not isinstance(error, ConnectionFailedError):
        return None
    if isinstance(error, RequestTimeoutError):
        return _of_silence(error.address, error.reason)
    try:
        host, port = host_port.split(error.address)
    except ValueError:
        return None
    return await _try(error.address, host, port, config)


def refusal(error: ResponseError) -> str | None:
    """Say why who asks may not; None where it failed for something else."""
    if error.code == ResponseCode.NO_PERMISSION:
        return error.remark
    # Brokers of 4.x say so by a code for anything, with the name of Java's class.
    found = _ACL_EXCEPTION(error.remark)
    return found and found[1]


def _of_silence(address: str, reason: str) -> Diagnosis:
    return Diagnosis(
        Reason.SILENT,
        address,
        reason,
        "see whether a firewall drops what is sent there, or the server is overloaded",
    )


async def _try(
    address: str, host: str, port: int, config: ClientConfig
) -> Diagnosis | None:
    name = config.tls_server_name or host
    try:
        async with asyncio.timeout(config.connect_timeout_s):
            if config.tls is None:
                return await _without_tls(address, host, port)
            return await _with_tls(address, host, port, config.tls, name)
    except TimeoutError:
        return _of_silence(address, "it does not answer")
    except socket.gaierror as error:
        return Diagnosis(
            Reason.UNKNOWN_HOST,
            address,
            f"no such host: {reason_of(error)}",
            "see whether the name is right, and this machine's DNS knows it",
        )
    except OSError as error:
        return Diagnosis(
            Reason.NOBODY,
            address,
            f"nobody listens: {reason_of(error)}",
            "start a node, or say where one is: --name-server HOST:PORT",
        )


async def _without_tls(address: str, host: str, port: int) -> Diagnosis | None:
    if not await _closes_plain(host, port) or not await _speaks_tls(host, port):
        return None
    return Diagnosis(
        Reason.TLS_WANTED,
        address,
        "TLS wanted: the server closes connections without TLS",
        "give --tls, and --tls-ca with the CA of its certificate",
    )


async def _closes_plain(host: str, port: int) -> bool:
    """Whether a server closes a connection that begins like a frame."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"\0")
        async with asyncio.timeout(_LOOK_S):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    finally:
        writer.close()


async def _speaks_tls(host: str, port: int) -> bool:
    # Nothing is sent but the greeting, so that it does not matter who answers.
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=anybody)
    except ssl.SSLError as error:
        return _is_alert(error)
    except ConnectionError:
        return False
    writer.transport.abort()
    return True


def _is_alert(error: ssl.SSLError) -> bool:
    return "ALERT" in (error.reason or "")


async def _with_tls(
    address: str, host: str, port: int, context: ssl.SSLContext, name: str
) -> Diagnosis | None:
    try:
        reader, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname=name
        )
    except ssl.SSLCertVerificationError as error:
        return _of_certificate(address, name, error)
    except ssl.SSLError as error:
        return _of_alert(address) if _is_alert(error) else _of_plain(address)
    except (ConnectionResetError, ConnectionAbortedError):
        return _of_plain(address)
    try:
        # In TLS 1.3 the server refuses after the client is done; some say why.
        async with asyncio.timeout(_LOOK_S):
            is_closed = await reader.read(1) == b""
    except TimeoutError:
        return None
    except OSError:
        is_closed = True
    finally:
        writer.transport.abort()
    return _of_alert(address) if is_closed else None


def _of_certificate(
    address: str, name: str, error: ssl.SSLCertVerificationError
) -> Diagnosis:
    if error.verify_code in _HOSTNAME_MISMATCH:
        return Diagnosis(
            Reason.WRONG_HOST,
            address,
            f"wrong host: its certificate is not for {name}",
            "connect to the name in the certificate, or give it: --tls-server-name",
        )
    return Diagnosis(
        Reason.UNTRUSTED,
        address,
        f"certificate not trusted: {error.verify_message}",
        "give the CA that signed it: --tls-ca FILE",
    )


def _of_alert(address: str) -> Diagnosis:
    return Diagnosis(
        Reason.CERTIFICATE_WANTED,
        address,
        "the server wants a client certificate, or another one",
        "give one that its client CA signed: --tls-cert FILE --tls-key FILE",
    )


def _of_plain(address: str) -> Diagnosis:
    return Diagnosis(
        Reason.NO_TLS,
        address,
        "no TLS: the server does not speak it",
        "give --no-tls, or the address of another listener",
    )
