"""What `ropeway doctor` checks on this machine: a configuration, and what it names."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway import secret_files
from gateway.config import ConfigError
from gateway.config_file import load
from gateway.tls import server_context
from gateway.wire import host_port
from ropeway.client.admin_doctor import Check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gateway.config import Config, PulsarConfig
    from ropeway.client.admin_doctor import State

_TIMEOUT_S = 5.0
_PULSAR_PORT = 6650
_ZOOKEEPER_PORT = 2181
_ZOOKEEPER = "zookeeper://"
_LOW_BYTES = 2 * 1024**3
"""Two segments of an embedded log as it is set up by default."""


def examine(config_file: Path | None) -> Iterator[Check]:
    """Check a configuration, and whether what it names is there.

    Args:
        config_file: A TOML file; None for the defaults.
    """
    try:
        config = load(config_file, {})
    except (ConfigError, OSError) as error:
        yield Check(
            "configuration", "problem", str(error), "docs/ropeway.toml has every key"
        )
        return
    what = str(config_file) if config_file else "the defaults"
    yield Check("configuration", "ok", f"{what} can be used")
    yield _data(config)
    yield from _secrets(config)
    for listener in config.listeners:
        yield _port(listener.host, listener.port)
    yield from _tls(config)
    if config.pulsar is not None:
        yield from _pulsar(config.pulsar)
    if config.routes is not None and config.routes.startswith(_ZOOKEEPER):
        yield from _zookeeper(
            config.routes, is_tls=bool(config.zookeeper.ca_certificate)
        )


def _data(config: Config) -> Check:
    place = config.data
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        return Check(
            "data",
            "problem",
            f"{config.data} cannot be written",
            "give its owner to the user that runs the node, or set `data` elsewhere",
        )
    free = shutil.disk_usage(place).free
    text = f"{config.data} can be written; {free // 2**20} MiB are free"
    if config.pulsar is None and free < _LOW_BYTES:
        return Check("data", "warning", text, "make room, or set `data` elsewhere")
    return Check("data", "ok", text)


def _secrets(config: Config) -> Iterator[Check]:
    is_refused = secret_files.refuses(config)
    found = list(secret_files.exposed(config))
    for one in found:
        state: State = "warning"
        if one.to_others and is_refused:
            state = "problem"
        yield Check("secrets", state, str(one), secret_files.ADVICE)
    if not found:
        yield Check("secrets", "ok", "no file with secrets can be read by others")


def _port(host: str, port: int) -> Check:
    where = host_port.join(host, port)
    if port and _answers(host, port) is None:
        return Check(
            "port", "ok", f"{where} is taken: a node listens there, or another"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return Check(
                "port",
                "problem",
                f"{where} cannot be listened on: {error.strerror}",
                "set another address in `listeners`, or --listen",
            )
    return Check("port", "ok", f"{where} is free")


def _tls(config: Config) -> Iterator[Check]:
    if config.tls is None:
        return
    try:
        server_context(config.tls)
    except (OSError, ssl.SSLError) as error:
        yield Check(
            "tls",
            "problem",
            f"{config.tls.certificate} and {config.tls.key} cannot be used: {error}",
            "both are PEM files, and the key is the certificate's",
        )
    else:
        yield Check("tls", "ok", f"{config.tls.certificate} can be used")


def _pulsar(config: PulsarConfig) -> Iterator[Check]:
    advice = "start Pulsar, or set pulsar.{} to where it is"
    for host, port in _places(config.service_url, _PULSAR_PORT):
        where = host_port.join(host, port)
        trouble = _answers(host, port)
        if trouble:
            text = f"no Pulsar at {where}: {trouble}"
            yield Check("pulsar", "problem", text, advice.format("service_url"))
        else:
            yield Check("pulsar", "ok", f"Pulsar's port {where} answers")
    yield _pulsar_admin(config, advice.format("admin_url"))


def _pulsar_admin(config: PulsarConfig, advice: str) -> Check:
    url = f"{config.admin_url.rstrip('/')}/admin/v2/clusters"
    request = urllib.request.Request(url)  # noqa: S310 - the configuration's own
    try:
        if config.token_file is not None:
            token = config.token_file.read_text("utf-8").strip()
            request.add_header("Authorization", f"Bearer {token}")
        context = None
        if url.startswith("https:"):
            context = ssl.create_default_context(
                cafile=str(config.ca_certificate) if config.ca_certificate else None
            )
        with urllib.request.urlopen(  # noqa: S310 - likewise
            request, timeout=_TIMEOUT_S, context=context
        ) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        return Check(
            "pulsar",
            "problem",
            f"{config.admin_url} answers {error.code} {error.reason}",
            "see pulsar.token_file and the token's rights",
        )
    except (OSError, ValueError) as error:
        return Check("pulsar", "problem", f"{config.admin_url}: {error}", advice)
    return Check("pulsar", "ok", f"Pulsar's admin interface {config.admin_url} answers")


def _zookeeper(url: str, *, is_tls: bool) -> Iterator[Check]:
    for host, port in _places(url, _ZOOKEEPER_PORT):
        where = host_port.join(host, port)
        trouble = _answers(host, port)
        if trouble is not None:
            yield Check(
                "zookeeper",
                "problem",
                f"no ZooKeeper at {where}: {trouble}",
                "start it, or set `routes` to where it is",
            )
            continue
        mode = None if is_tls else _zookeeper_mode(host, port)
        said = f" and is {mode}" if mode else ""
        yield Check("zookeeper", "ok", f"ZooKeeper at {where} answers{said}")


def _zookeeper_mode(host: str, port: int) -> str | None:
    """What a server says it is: leader, follower, standalone; None where it may not."""
    try:
        with socket.create_connection((host, port), _TIMEOUT_S) as connection:
            connection.sendall(b"srvr")
            text = connection.makefile(errors="replace").read(4096)
    except OSError:
        return None
    lines = (line.partition(": ") for line in text.splitlines())
    return next((value for name, _, value in lines if name == "Mode"), None)


def _places(url: str, default_port: int) -> Iterator[tuple[str, int]]:
    """The servers of a URL with commas in between."""
    for part in urlsplit(url).netloc.split(","):
        if part.rpartition("]")[2].count(":"):
            yield host_port.split(part)
        elif part:
            yield part.strip("[]"), default_port


def _answers(host: str, port: int) -> str | None:
    """Why nothing answers at an address; None where something does."""
    try:
        with socket.create_connection((host, port), _TIMEOUT_S):
            return None
    except OSError as error:
        return error.strerror or str(error)
