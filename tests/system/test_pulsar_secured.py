"""Ropeway on a Pulsar that asks for tokens and speaks TLS, and its clients there."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from storage.api import LogUnavailableError
from storage.pulsar.admin import Admin
from storage.pulsar.authentication import Token
from storage.pulsar.cluster import authentication
from storage.pulsar.errors import NotAllowedError, PulsarError, PulsarUnavailableError
from storage.pulsar.oauth2 import OAuth2Settings
from storage.pulsar.settings import PulsarLogSettings
from storage.pulsar.tls import TlsFiles
from tests.clients.harness import AgentError, Session, bodies, numbered
from tests.clients.programs import JAVA_5
from tests.gateway.test_tls import Pair, issue, trusting
from tests.system.issuer import CLIENT, Issuer
from tests.system.pulsar_client import Writer, client_of, numbers, on_uvloop, read_all
from tests.system.ropeway import Ropeway
from tests.system.secured_pulsar import ADMIN, KEY, PASSWORD, secured_pulsar, token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar

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


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return issue(tmp_path_factory.mktemp("tls"), "server", address="127.0.0.1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[Pulsar]:
    """A Pulsar where `admin` may do all, and who else has a token may do nothing."""
    secured = secured_pulsar(tmp_path_factory.mktemp("pulsar"), pair)
    try:
        secured.start()
        secured.make_namespace("public/secured")
        yield secured
    finally:
        secured.kill()


@on_uvloop()
async def test_a_token_that_is_accepted_lets_write_and_read(server):
    async with client_of(
        server, authentication=Token(lambda: token("admin"))
    ) as client:
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
    async with client_of(server, authentication=shown and Token(shown)) as client:
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

    async with client_of(server, authentication=Token(short)) as client:
        writer = await Writer.open(client, TOPIC)
        while len(shown) < 3:
            writer.send(1)
            await writer.settled()
            await asyncio.sleep(0.05)
        assert (writer.errors, writer.lost) == ([], [])


@on_uvloop()
async def test_tls_carries_the_same(server, pair):
    who = Token(lambda: token("admin"))
    more = {"tls": lambda: trusting(pair), "authentication": who}
    async with client_of(server.tls_service_url, **more) as client:
        writer = await Writer.open(client, TOPIC)
        writer.send(100)
        await writer.settled()
        assert numbers(await read_all(client, TOPIC))[-100:] == list(range(100))


@on_uvloop()
async def test_a_certificate_that_is_not_trusted_is_refused(server):
    more = {"authentication": Token(lambda: token("admin")), "request_timeout_s": 1}
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


REFUSED = "Pulsar does not permit|AuthenticationError"


class Way(NamedTuple):
    """One way in: what `[pulsar]` says of it, and how to make it the right one."""

    settings: dict[str, Any]
    mend: Callable[[], object]
    """It is the wrong one before."""
    said: str
    """Of the wrong one."""


@pytest.fixture
def issuer(pair: Pair) -> Iterator[Issuer]:
    """One whose tokens end while a test runs."""
    made = Issuer(pair, lambda seconds: token(ADMIN, seconds), seconds=4)
    yield made
    made.close()


@pytest.fixture(params=["certificate", "password", "token", "oauth2"])
def way(
    request: pytest.FixtureRequest, tmp_path: Path, pair: Pair, issuer: Issuer
) -> Way:
    """Each of them; a file has what Pulsar refuses until it is replaced."""
    file = tmp_path / "secret"

    def write(text: str) -> None:
        # As who rotates it does: another file takes its place.
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").replace(file)

    if request.param == "certificate":
        shown = issue(tmp_path, "stranger", pair)
        right = issue(tmp_path, ADMIN, pair)

        def mend() -> None:
            right.certificate.replace(shown.certificate)
            right.key.replace(shown.key)

        settings = {"certificate": str(shown.certificate), "key": str(shown.key)}
        return Way(settings, mend, "Pulsar does not permit|AuthorizationError")
    if request.param == "password":
        write("wrong")
        settings = {"user": ADMIN, "password_file": str(file)}
        return Way(settings, lambda: write(f"{PASSWORD}\n"), REFUSED)
    if request.param == "token":
        write(token(ADMIN, signed_with=b"x" * 32))
        return Way({"token_file": str(file)}, lambda: write(token(ADMIN)), REFUSED)
    write(json.dumps({**CLIENT, "client_secret": "wrong"}))
    oauth2 = OAuth2Settings(
        issuer_url=issuer.url,
        credentials_file=str(file),
        audience="pulsar",
        tls_ca_file=str(pair.certificate),
    )
    return Way(
        {"oauth2": oauth2}, lambda: write(json.dumps(CLIENT)), " 401 invalid_client$"
    )


def settings_of(server: Pulsar, pair: Pair, way: Way) -> PulsarLogSettings:
    urls = {"service_url": server.tls_service_url, "admin_url": server.tls_admin_url}
    ca = str(pair.certificate)
    return PulsarLogSettings(tls_ca_file=ca, **urls, **way.settings)


@on_uvloop()
async def test_each_way_in_leads_to_brokers_and_admin_and_is_read_anew(
    server: Pulsar, pair: Pair, way: Way
):
    given = settings_of(server, pair, way)
    tls = TlsFiles(given.tls_ca_file, given.certificate, given.key)
    more: dict[str, Any] = {"authentication": authentication(given), "tls": tls}
    admin = Admin(given.admin_url, **more)
    try:
        with pytest.raises(LogUnavailableError, match=way.said):
            await admin.policies("public/secured")
        async with client_of(given.service_url, **more, request_timeout_s=5) as client:
            with pytest.raises(PulsarError, match=way.said):
                await Writer.open(client, TOPIC)
        way.mend()
        await permitted(admin)
        async with client_of(given.service_url, **more) as client:
            writer = await Writer.open(client, TOPIC)
            writer.send(3)
            await writer.settled()
            assert writer.errors == []
    finally:
        await admin.close()


async def permitted(admin: Admin) -> None:
    """Return when we are: an issuer that has refused us is left alone for a second."""
    while True:
        try:
            assert await admin.policies("public/secured")
        except LogUnavailableError:
            await asyncio.sleep(0.1)
        else:
            return
