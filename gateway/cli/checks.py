"""What `ropeway doctor` checks on this machine: a configuration, and what it names."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ropeway.client.admin_doctor import Check
from ropeway.common.reasons import reason_of
from ropeway.gateway import access_control, backends, logs, on_pulsar, secret_files
from ropeway.gateway.addresses import is_everywhere
from ropeway.gateway.config import ConfigError
from ropeway.gateway.config_file import load
from ropeway.gateway.tls import server_context
from ropeway.gateway.wire import host_port
from ropeway.routing.api import RouteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ropeway.client.admin_doctor import State
    from ropeway.gateway.config import Config
    from ropeway.gateway.pulsar_config import PulsarConfig
    from ropeway.routing.api import RouteStore

_TIMEOUT_S = 5.0
_PULSAR_PORT = 6650
_ZOOKEEPER_PORT = 2181
_ZOOKEEPER = "zookeeper://"
_LOW_BYTES = 2 * 1024**3
"""Two segments of an embedded log as it is set up by default."""


def examine(config_file: Path | None, *, fix: bool = False) -> Iterator[Check]:
    """Check a configuration, and whether what it names is there.

    Args:
        config_file: A TOML file; None for the defaults.
        fix: Whether to mend what does not fit the routes in Pulsar.
    """
    try:
        config = load(config_file, {})
    except (ConfigError, OSError) as error:
        yield Check(
            "configuration",
            "problem",
            reason_of(error),
            "docs/ropeway.toml has every key",
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
        yield from _pulsar(config, config.pulsar, fix=fix)
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
                f"{where} cannot be listened on: {reason_of(error)}",
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
            f"{config.tls.certificate} and {config.tls.key} cannot be used: "
            f"{reason_of(error)}",
            "both are PEM files, and the key is the certificate's",
        )
    else:
        yield Check("tls", "ok", f"{config.tls.certificate} can be used")


def _pulsar(config: Config, given: PulsarConfig, *, fix: bool) -> Iterator[Check]:
    for host, port in _places(given.service_url, _PULSAR_PORT):
        where = host_port.join(host, port)
        trouble = _answers(host, port)
        if trouble:
            text = f"no Pulsar at {where}: {trouble}"
            advice = "start Pulsar, or set pulsar.service_url to where it is"
            yield Check("pulsar", "problem", text, advice)
        else:
            yield Check("pulsar", "ok", f"Pulsar's port {where} answers")
    yield from asyncio.run(_namespaces(config, fix=fix))


async def _namespaces(config: Config, *, fix: bool) -> list[Check]:
    """What a start on Pulsar would find, with the token and the routes that it has."""
    found: list[Check] = []
    owner = expected = None
    try:
        routes = await backends.look_at_routes(config)
        if routes is not None:
            owner = on_pulsar.known_owner(config, routes)
            expected = on_pulsar.expected(routes)
            found += _deletions(routes)
            found += _name(config, routes)
            await routes.close()
    except (ConfigError, RouteError, OSError) as error:
        advice = "see `routes`; whose Pulsar's namespaces are is not looked at without"
        found.append(Check("routes", "problem", reason_of(error), advice))
    try:
        findings = await on_pulsar.examine(config, owner, expected, fix=fix)
    except (ConfigError, OSError) as error:
        advice = "see the table pulsar in docs/ropeway.toml"
        return [*found, Check("pulsar", "problem", reason_of(error), advice)]
    _record(config, {one.mended: one.text for one in findings if one.mended})
    for one in findings:
        state: State = "problem" if one.refused else "warning" if one.advice else "ok"
        found.append(Check("pulsar", state, one.text, one.advice))
    return found


def _record(config: Config, mended: Mapping[str, str]) -> None:
    """Write which topics of Pulsar were changed to the nodes' audit file, if any."""
    if not mended or config.audit.file is None:
        return
    # The standard output is for what was found.
    logs.configure("warning", "text")
    with ExitStack() as stack:
        audit = access_control.open_audit(config, stack)
        for topic, what in mended.items():
            resource = f"PulsarTopic:{topic}"
            audit.change("DOCTOR_FIX", None, None, resource, None, what)


def _deletions(routes: RouteStore) -> Iterator[Check]:
    """Deletions that wait for a broker which does not run."""
    waiting: dict[str, list[str]] = {}
    for topic in (*routes.topics.values(), *routes.deleted.values()):
        for broker in {each for one in topic.deletions for each in one.pending}:
            if broker not in routes.brokers:
                waiting.setdefault(broker, []).append(topic.name)
    for broker, topics in sorted(waiting.items()):
        yield Check(
            "routes",
            "warning",
            f"broker {broker} does not run, and has not heard that {len(topics)} "
            f"topics were deleted, like {min(topics)}",
            f"start a node of it (--broker {broker}): it forgets their offsets then; "
            f"or where it never comes back: ropeway broker remove {broker} --gone",
        )


def _name(config: Config, routes: RouteStore) -> Iterator[Check]:
    """Whether another process has the name of this node: a start is refused then."""
    listener = config.listeners[0]
    port = listener.advertised_port or listener.port
    host = listener.advertised_host or listener.host
    for one in routes.brokers.get(config.broker, ()):
        if config.node != one.node:
            continue
        text = (
            f"node {one.node} of broker {one.name} runs, as process {one.pid} at "
            f"{', '.join(one.addresses)}"
        )
        there = host_port.split(one.addresses[0])
        is_other = port not in {0, there[1]} or (
            not is_everywhere(listener) and host != there[0]
        )
        if not is_other:
            yield Check("node", "ok", text)
            continue
        yield Check(
            "node",
            "problem",
            f"{text}, and not at {host_port.join(host, port)}: a start is refused",
            "give each node a name of its own (`node`, or --node), or stop the other",
        )


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
        return reason_of(error)
