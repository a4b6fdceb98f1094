"""Ropeway on a Pulsar that asks for tokens and speaks TLS, and its clients there."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING

import pytest

from storage.pulsar.errors import NotAllowedError, PulsarUnavailableError
from tests.clients.harness import AgentError, Session, bodies, numbered
from tests.clients.programs import JAVA_5
from tests.gateway.test_tls import Pair, issue, trusting
from tests.system.pulsar import Pulsar
from tests.system.pulsar_client import Writer, client_of, numbers, on_uvloop, read_all
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents

SEEN_S = 60
"""How soon a change of permissions is seen."""
SETTINGS = """\
[pulsar]
service_url = "{service_url}"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "gateway"
namespaces = ["public/secured"]
[acl]
hooks = ["pulsar"]
[acl.options.pulsar]
token_secret_key = "{directory}/key"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "gateway"
refresh_s = 2.0
"""
pytestmark = [pytest.mark.jvm, pytest.mark.server]
TOPIC = "persistent://public/secured/topic"
KEY = bytes(range(32))
TOKENS = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
AS_ITSELF = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def token(subject: str, seconds: float = 3600, signed_with: bytes = KEY) -> str:
    """A JWT that ends after some seconds."""

    def encoded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    claims = {"sub": subject, "exp": int(time.time() + seconds)}
    text = b".".join(
        encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims)
    )
    signature = hmac.new(signed_with, text, hashlib.sha256).digest()
    return b".".join((text, encoded(signature))).decode()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return issue(tmp_path_factory.mktemp("tls"), "server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[Pulsar]:
    """A Pulsar where `admin` may do all, and who else has a token may do nothing."""
    admin = token("admin")
    secured = Pulsar(
        tmp_path_factory.mktemp("pulsar"),
        settings={
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": TOKENS,
            "superUserRoles": "admin",
            "tokenSecretKey": f"data:;base64,{base64.b64encode(KEY).decode()}",
            "authenticationRefreshCheckSeconds": "1",
            "brokerClientAuthenticationPlugin": AS_ITSELF,
            "brokerClientAuthenticationParameters": f"token:{admin}",
        },
        token=admin,
        tls=(pair.certificate, pair.key),
    )
    try:
        secured.start()
        secured.make_namespace("public/secured")
        yield secured
    finally:
        secured.kill()


@on_uvloop()
async def test_a_token_that_is_accepted_lets_write_and_read(server):
    async with client_of(server, token=lambda: token("admin")) as client:
        writer = await Writer.open(client, TOPIC)
        writer.send(3)
        await writer.settled()
        assert writer.errors == []
        assert numbers(await read_all(client, TOPIC))[-3:] == [0, 1, 2]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (lambda: token("admin", signed_with=b"x" * 32), "AuthenticationError"),
        (lambda: token("admin", seconds=-60), "AuthenticationError"),
        (lambda: "garbage", "AuthenticationError"),
        (lambda: token("stranger"), "AuthorizationError"),
        (None, "AuthenticationError"),
    ],
)
@on_uvloop()
async def test_a_token_that_is_not_accepted_is_refused_at_once(server, shown, said):
    async with client_of(server, token=shown) as client:
        with pytest.raises(NotAllowedError, match=said):
            await Writer.open(client, TOPIC)
        with pytest.raises(NotAllowedError, match=said):
            await read_all(client, TOPIC)


@on_uvloop()
async def test_a_token_that_ends_is_asked_for_again_without_a_break(server):
    shown: list[str] = []

    def short() -> str:
        shown.append(token("admin", seconds=4))
        return shown[-1]

    async with client_of(server, token=short) as client:
        writer = await Writer.open(client, TOPIC)
        while len(shown) < 3:
            writer.send(1)
            await writer.settled()
            await asyncio.sleep(0.05)
        assert (writer.errors, writer.lost) == ([], [])


@on_uvloop()
async def test_tls_carries_the_same(server, pair):
    context = trusting(pair)
    context.check_hostname = False  # the certificate names no address
    more = {"tls": context, "token": lambda: token("admin")}
    async with client_of(server.tls_service_url, **more) as client:
        writer = await Writer.open(client, TOPIC)
        writer.send(100)
        await writer.settled()
        assert numbers(await read_all(client, TOPIC))[-100:] == list(range(100))


@on_uvloop()
async def test_a_certificate_that_is_not_trusted_is_refused(server):
    more = {"token": lambda: token("admin"), "request_timeout_s": 1}
    async with client_of(server.tls_service_url, **more) as client:
        with pytest.raises(PulsarUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            await Writer.open(client, TOPIC)


@pytest.fixture
def gateway(server: Pulsar, tmp_path: Path) -> Iterator[Ropeway]:
    """A gateway that believes Pulsar's tokens, and has one of its own."""
    (tmp_path / "token").write_text(token("admin"))
    (tmp_path / "key").write_bytes(KEY)
    settings = tmp_path / "ropeway.toml"
    urls = {"service_url": server.service_url, "admin_url": server.admin_url}
    settings.write_text(SETTINGS.format(directory=tmp_path, **urls))
    started = Ropeway(tmp_path / "gateway", options=["--config", str(settings)])
    started.start()
    yield started
    started.stop()


def test_clients_may_do_what_pulsar_permits_their_role(
    server: Pulsar, gateway: Ropeway, agents: Agents
) -> None:
    session = Session(agents.of(JAVA_5), gateway.name_server)
    permissions = "namespaces/public/secured/permissions"

    def shown(role: str, **more: object) -> dict[str, object]:
        # The secret key is not used, and a token's end is part of it.
        keys = {"access_key": token(role), "secret_key": "rop"}
        return {"namespace": "public|secured", **keys, **more}

    writer, reader, stranger = shown("writer"), shown("reader"), shown("stranger")

    def refused(call: Callable[[], object]) -> str | None:
        try:
            call()
        except AgentError as error:
            return str(error)
        return None

    server.admin("POST", f"{permissions}/writer", ["produce"])
    server.admin("POST", f"{permissions}/reader", ["consume"])
    messages = numbered(3)
    session.produce("orders", messages, **writer)
    consumer = session.start("consume", topic="orders", group="readers", **reader)
    received = consumer.wait_for_bodies(bodies(messages))
    assert sorted(bodies(received)) == sorted(bodies(messages))
    for keys in (reader, stranger, shown("writer", access_key=token("writer", -60))):
        assert refused(lambda keys=keys: session.produce("orders", messages, **keys))
    denied = session.start("consume", topic="orders", group="others", **writer)
    session.produce("orders", numbered(1), **writer)
    consumer.wait_for(4)
    assert denied.events("received") == []
    denied.stop()
    consumer.stop()

    server.admin("DELETE", f"{permissions}/writer")
    until = time.monotonic() + SEEN_S
    while not refused(lambda: session.produce("orders", messages, **writer)):
        assert time.monotonic() < until
        time.sleep(0.2)
