"""Ropeway on a Pulsar that asks for tokens and speaks TLS, and its clients there."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.authentication import Token
from ropeway.storage.pulsar.cluster import authentication
from ropeway.storage.pulsar.errors import (
    NotAllowedError,
    PulsarError,
    PulsarUnavailableError,
)
from ropeway.storage.pulsar.tls import TlsFiles
from tests.clients.harness import AgentError, Session, bodies, numbered
from tests.clients.programs import JAVA_5
from tests.gateway.test_tls import Pair, issue, trusting
from tests.remoting import looped, to_fields
from tests.requests import sending
from tests.system.issuer import CLIENT, Issuer
from tests.system.pulsar_client import (
    TIMEOUT_S,
    Writer,
    client_of,
    numbers,
    on_uvloop,
    read_all,
)
from tests.system.ropeway import PATIENT, Ropeway
from tests.system.secured_pulsar import (
    ADMIN,
    EXTERNAL,
    KEY,
    PASSWORD,
    REFUSED_S,
    SETTINGS,
    secured_pulsar,
    token,
)
from tests.system.test_cluster import reach
from tests.system.test_doctor import here
from tests.system.test_namespaces import bodies as stored
from tests.system.test_namespaces import place_order, running
from tests.system.ways_in import (
    HOOK,
    Way,
    as_table,
    issuer,
    permitted,
    settings_file,
    settings_of,
    way,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ropeway.storage.pulsar.client import PulsarClient
    from tests.clients.fixtures import Agents
    from tests.system.pulsar import Pulsar

SEEN_S = 60
"""How soon a change of permissions is seen."""
__all__ = ["issuer", "way"]
pytestmark = [pytest.mark.jvm, pytest.mark.server]
TOPIC = "persistent://public/secured/topic"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return issue(tmp_path_factory.mktemp("tls"), "localhost", address="127.0.0.1")


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
    who = Token(lambda: token("admin"))
    async with client_of(server, authentication=who) as client:
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
        shown.append(token("admin", seconds=SHORT_S))
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
async def test_beside_a_certificate_the_token_says_who_we_are(server, pair, tmp_path):
    context = trusting(pair, issue(tmp_path, "stranger", pair))
    more = {"tls": lambda: context, "authentication": Token(lambda: token(ADMIN))}
    async with client_of(server.tls_service_url, **more) as client:
        writer = await Writer.open(client, TOPIC)
        writer.send(1)
        await writer.settled()
        assert writer.errors == []


@on_uvloop()
async def test_a_certificate_that_is_not_trusted_is_refused(server):
    more = {
        "authentication": Token(lambda: token("admin")),
        "request_timeout_s": REFUSED_S,
    }
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
    settings.write_text(PATIENT + SETTINGS.format(directory=tmp_path, **urls))
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


SHORT_S = 8
"""For how long a token is good that ends meanwhile: not before it has been shown."""
ROTATED_S = 20
"""For how long a token is good that is replaced twice a second."""
SECRETS = (PASSWORD, CLIENT["client_secret"])


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
        # What an issuer refuses is tried again for so long.
        limit_s = REFUSED_S if given.oauth2 else TIMEOUT_S
        wrong = {**more, "request_timeout_s": limit_s}
        async with client_of(given.service_url, **wrong) as client:
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


@pytest.mark.parametrize("way", ["oauth2"], indirect=True)
@on_uvloop()
async def test_a_token_of_an_issuer_that_ends_is_renewed_without_a_break(
    server: Pulsar, pair: Pair, way: Way, issuer: Issuer
):
    way.mend()
    issuer.seconds = SHORT_S
    who = authentication(settings_of(server, pair, way))
    more: dict[str, Any] = {"authentication": who, "tls": lambda: trusting(pair)}
    async with client_of(server.tls_service_url, **more) as client:
        writer = await Writer.open(client, TOPIC)
        # Nobody asks for a proof here but the broker, once it has ended.
        while len(issuer.given) < 3:
            writer.send(1)
            await writer.settled()
            await asyncio.sleep(0.05)
        assert (writer.errors, writer.lost) == ([], [])


@on_uvloop()
async def test_brokers_are_reached_by_the_listener_that_is_named(
    server: Pulsar, pair: Pair
):
    async def host_of(client: PulsarClient) -> str:
        try:
            return await client.host_of(TOPIC)
        except PulsarError as error:
            return str(error)

    who = Token(lambda: token(ADMIN))
    more: dict[str, Any] = {"authentication": who, "tls": lambda: trusting(pair)}
    for url in (server.service_url, server.tls_service_url):
        for name, wanted in (None, "127."), (EXTERNAL, "localhost"), ("absent",) * 2:
            async with client_of(url, listener_name=name, **more) as client:
                # It may say what it was just asked: apache/pulsar/issues/26244.
                while wanted not in await host_of(client):
                    pass
                if name == EXTERNAL:
                    writer = await Writer.open(client, TOPIC)
                    writer.send(3)
                    await writer.settled()
                    assert writer.errors == []


@looped
async def test_a_node_and_doctor_go_in_each_way_and_tell_no_secret(
    tmp_path: Path, server: Pulsar, pair: Pair, way: Way, issuer: Issuer
):
    settings = settings_file(tmp_path, server, pair, as_table(way))
    ((check, text, _),) = here(settings)
    assert (check, bool(re.search(way.said, text))) == ("pulsar", True)
    way.mend()
    assert here(settings) == []
    # Brokers that are down are passed over, on TLS and signed in, too.
    down = re.compile(r'^((?:service|admin)_url = ".*//)', re.MULTILINE)
    settings.write_text(down.sub(r"\g<1>127.0.0.1:1,", settings.read_text()))
    with running(tmp_path / "node", "--config", str(settings)) as node:
        await place_order(node, b"one")
        assert await stored(node) == [b"one"]
        log = (tmp_path / "node" / "ropeway.log").read_text()
        assert [one for one in (*SECRETS, *issuer.given) if one in log] == []


@looped
async def test_permissions_are_asked_for_as_the_log_signs_in(
    tmp_path: Path, server: Pulsar, pair: Pair, way: Way
):
    way.mend()
    (tmp_path / "key").write_bytes(KEY)
    hook = HOOK.format(directory=tmp_path)
    settings = settings_file(tmp_path, server, pair, as_table(way) + hook)
    permissions = f"namespaces/public/{tmp_path.name}/permissions"
    server.admin("POST", f"{permissions}/writer", ["produce"])

    async def code(node: Ropeway, role: str) -> int:
        fields = {
            **to_fields(sending("orders")),
            "AccessKey": token(role),
            "Signature": "unused",
        }
        async with reach(node) as client:
            return (await client.ask(310, b"one", fields=fields)).code

    with running(tmp_path / "node", "--config", str(settings)) as node:
        assert await code(node, "writer") == 0
        assert await code(node, "stranger") == ResponseCode.NO_PERMISSION


@looped
async def test_a_node_goes_on_once_a_token_that_had_ended_is_replaced(
    tmp_path: Path, server: Pulsar, pair: Pair
):
    file = tmp_path / "token"

    def write(seconds: float) -> None:
        (tmp_path / "next").write_text(token(ADMIN, seconds))
        (tmp_path / "next").replace(file)

    async def rotate() -> None:
        while True:
            write(ROTATED_S)
            await asyncio.sleep(0.5)

    write(ROTATED_S)
    settings = settings_file(tmp_path, server, pair, f'token_file = "{file}"\n')
    rotating = asyncio.create_task(rotate())
    node = Ropeway(tmp_path / "node", options=["--config", str(settings)])
    await asyncio.to_thread(node.start)
    taken: list[bytes] = []

    async def is_taken() -> bool:
        body = b"%d" % len(taken)
        async with reach(node) as client:
            answer = await client.ask(sending("orders"), body)
        if answer.code == 0:
            taken.append(body)
        await asyncio.sleep(0.1)
        return answer.code == 0

    try:
        while not await is_taken():
            pass
        rotating.cancel()
        write(-60)
        while await is_taken():
            pass
        rotating = asyncio.create_task(rotate())
        while not await is_taken():
            pass
        found = await stored(node)
        assert [one for one in taken if one not in found] == []
    finally:
        rotating.cancel()
        await asyncio.to_thread(node.stop)
