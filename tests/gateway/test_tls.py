"""TLS and plain text on one port."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import socket
import ssl
from typing import TYPE_CHECKING, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import structs
from structlog.testing import capture_logs

from ropeway.gateway.app import App
from ropeway.gateway.config import ConfigError, LimitsConfig, TlsConfig
from ropeway.gateway.tls import Certificates, first_byte, node_context
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from tests.remoting import ROOMY, config, connect, looped, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


class Pair(NamedTuple):
    """A certificate with its key, in files and as objects."""

    certificate: Path
    key: Path
    made: x509.Certificate
    secret: ec.EllipticCurvePrivateKey


def issue(
    folder: Path, name: str, issuer: Pair | None = None, *, address: str | None = None
) -> Pair:
    """Make a certificate, signed by itself or by another."""
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if address is not None:
        names.append(x509.IPAddress(ipaddress.ip_address(address)))
    secret = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.made.subject if issuer else subject)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
        .sign(issuer.secret if issuer else secret, hashes.SHA256())
    )
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return Pair(certificate, key, made, secret)


@pytest.fixture
def server_pair(tmp_path: Path) -> Pair:
    return issue(tmp_path, "localhost")


def trusting(pair: Pair, own: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pair.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


def tls_app(tmp_path: Path, pair: Pair, *, handshake_ms: int = 10_000, **more) -> App:
    tls = TlsConfig(certificate=pair.certificate, key=pair.key, **more)
    limits = LimitsConfig(write_buffer_bytes=1 << 20, slow_reader_ms=60_000)
    limits = structs.replace(limits, handshake_ms=handshake_ms)
    return App(config(tmp_path / "data", tls=tls, limits=limits, log=ROOMY))


@looped
async def test_tls_and_plain_text_share_a_port(tmp_path: Path, server_pair: Pair):
    async with tls_app(tmp_path, server_pair) as app:
        listener = app.server.listeners[0]
        async with (
            connect(listener, tls=trusting(server_pair)) as secret,
            connect(listener) as plain,
        ):
            body = b"x" * 3_000_000
            assert (await secret.ask(sending("orders"), body)).code == 0
            for client in (plain, secret):
                (found,) = (await client.ask(pulling("orders"))).messages()
                assert found.body == body
            assert found.born_host[0] == "127.0.0.1"
            assert f"127.0.0.1:{found.born_host[1]}" == secret.address


@looped
async def test_many_large_answers_arrive_over_tls(tmp_path: Path, server_pair: Pair):
    async with (
        tls_app(tmp_path, server_pair) as app,
        connect(app.server.listeners[0], tls=trusting(server_pair)) as client,
    ):
        for _ in range(3):
            await client.ask(sending("orders"), b"x" * 1_000_000)
        await client.ask(pulling("orders", bulk=True))
        futures = [client.send(pulling("orders", bulk=True)) for _ in range(20)]
        for answer in await asyncio.gather(*futures):
            assert len(answer.messages()) == 3


@looped
async def test_plain_text_is_refused_where_tls_is_required(
    tmp_path: Path, server_pair: Pair
):
    async with tls_app(tmp_path, server_pair, required=True) as app:
        listener = app.server.listeners[0]
        async with connect(listener) as plain:
            plain.send(GetAllTopicList())
            await plain.closed()
            assert plain.answers == []
        async with connect(listener, tls=trusting(server_pair)) as secret:
            assert (await secret.ask(GetAllTopicList())).code == 0


@looped
async def test_clients_show_a_certificate_where_one_is_asked_for(
    tmp_path: Path, server_pair: Pair
):
    authority = issue(tmp_path, "authority")
    known = issue(tmp_path, "known", authority)
    stranger = issue(tmp_path, "stranger")
    app = tls_app(tmp_path, server_pair, client_ca=authority.certificate)
    async with app:
        listener = app.server.listeners[0]
        async with connect(listener, tls=trusting(server_pair, known)) as client:
            assert (await client.ask(GetAllTopicList())).code == 0
        for own in (None, stranger):
            # TLS 1.3 tells the client of it only after its own handshake.
            with pytest.raises((ssl.SSLError, OSError)):
                async with connect(listener, tls=trusting(server_pair, own)) as client:
                    await client.ask(GetAllTopicList())
        await until(lambda: not listener.connections)


@looped
async def test_a_client_that_does_not_finish_its_handshake_is_closed(
    tmp_path: Path, server_pair: Pair
):
    async with tls_app(tmp_path, server_pair, handshake_ms=200) as app:
        listener = app.server.listeners[0]
        async with (
            connect(listener) as silent,
            connect(listener) as half,
            connect(listener) as wrong,
        ):
            half.writer.write(b"\x16\x03\x01\x02")
            wrong.writer.write(b"\x16 is not enough to be TLS, by far")
            for client in (silent, half, wrong):
                await client.closed()
        assert not app.server._accepted
        # A busy machine takes longer than that for a whole handshake.
        app.server._limits = structs.replace(app.server._limits, handshake_ms=60_000)
        async with connect(listener, tls=trusting(server_pair)) as client:
            assert (await client.ask(GetAllTopicList())).code == 0


@looped
async def test_a_probe_that_sends_nothing_is_no_event(
    tmp_path: Path, server_pair: Pair
):
    async with tls_app(tmp_path, server_pair) as app:
        arriving = app.server._accepted
        with capture_logs() as lines:
            async with connect(app.server.listeners[0]):
                await until(lambda: arriving)
            await until(lambda: not arriving)
        assert {line["log_level"] for line in lines} <= {"debug"}, lines


@looped
async def test_shutdown_does_not_wait_for_handshakes(tmp_path: Path, server_pair: Pair):
    async with (
        tls_app(tmp_path, server_pair, handshake_ms=600_000) as app,
        connect(app.server.listeners[0]) as silent,
        connect(app.server.listeners[0]) as half,
    ):
        half.writer.write(b"\x16\x03\x01\x02")
        await until(lambda: len(app.server._accepted) == 2)
        await app.server.close(5)
        await silent.closed()
        await half.closed()


@looped
async def test_files_that_are_no_certificates_are_named(
    tmp_path: Path, server_pair: Pair
):
    for broken in (server_pair.key, tmp_path / "missing.pem"):
        pair = server_pair._replace(certificate=broken)
        with pytest.raises(ConfigError, match=broken.name):
            async with tls_app(tmp_path, pair):
                pass


@looped
async def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(
    tmp_path: Path, server_pair: Pair
):
    server_pair.key.write_bytes(
        server_pair.secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match=server_pair.key.name):
        async with tls_app(tmp_path, server_pair):
            pass


@looped
async def test_a_client_without_a_certificate_is_let_in_where_it_is_optional(
    tmp_path: Path, server_pair: Pair
):
    authority = issue(tmp_path, "authority")
    known = issue(tmp_path, "known", authority)
    stranger = issue(tmp_path, "stranger")
    more = {"client_ca": authority.certificate, "client_certificate": "optional"}
    async with tls_app(tmp_path, server_pair, **more) as app:
        listener = app.server.listeners[0]
        for own in (None, known):
            async with connect(listener, tls=trusting(server_pair, own)) as client:
                assert (await client.ask(GetAllTopicList())).code == 0
        with pytest.raises((ssl.SSLError, OSError)):
            async with connect(listener, tls=trusting(server_pair, stranger)) as client:
                await client.ask(GetAllTopicList())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@looped
async def test_nothing_older_than_tls_1_2_is_spoken(tmp_path: Path, server_pair: Pair):
    old = trusting(server_pair)
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    async with tls_app(tmp_path, server_pair) as app:
        listener = app.server.listeners[0]
        with pytest.raises((ssl.SSLError, OSError)):
            async with connect(listener, tls=old):
                pass
        exact = trusting(server_pair)
        exact.maximum_version = ssl.TLSVersion.TLSv1_2
        async with connect(listener, tls=exact) as client:
            assert (await client.ask(GetAllTopicList())).code == 0


@looped
async def test_a_renewed_certificate_is_shown_without_a_restart(
    tmp_path: Path, server_pair: Pair
):
    (tmp_path / "new").mkdir()
    renewed = issue(tmp_path / "new", "localhost")

    async def shows_renewed() -> bool:
        try:
            async with connect(listener, tls=trusting(renewed)):
                return True
        except ssl.SSLCertVerificationError:
            return False

    async with tls_app(tmp_path, server_pair) as app:
        listener = app.server.listeners[0]
        async with connect(listener, tls=trusting(server_pair)) as before:
            renewed.certificate.replace(server_pair.certificate)
            renewed.key.replace(server_pair.key)
            renewed = renewed._replace(certificate=server_pair.certificate)
            while not await shows_renewed():  # noqa: ASYNC110 - files tell nobody
                await asyncio.sleep(0.05)
            assert (await before.ask(GetAllTopicList())).code == 0


def test_a_broken_or_half_written_pair_changes_nothing_and_is_said_once(
    tmp_path: Path, server_pair: Pair, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "new").mkdir()
    renewed = issue(tmp_path / "new", "localhost")
    certificates = Certificates(TlsConfig(server_pair.certificate, server_pair.key))
    first = certificates.server
    times_s = iter(range(10, 100, 10))

    def look() -> str:
        certificates.refresh(next(times_s))
        return capsys.readouterr().out

    assert look() == ""
    whole = renewed.certificate.read_bytes()
    server_pair.certificate.write_bytes(whole[: len(whole) // 2])
    assert "new certificate not used, the old one stays" in look()
    assert look() == ""
    # Whole, but the key is still the old one's.
    server_pair.certificate.write_bytes(whole)
    assert "not used" in look()
    server_pair.key.unlink()
    assert "not used" in look()
    assert certificates.server is first
    server_pair.key.write_bytes(renewed.key.read_bytes())
    assert "not used" not in look()
    assert certificates.server is not first


def test_files_are_looked_at_once_a_second(tmp_path: Path, server_pair: Pair):
    certificates = Certificates(TlsConfig(server_pair.certificate, server_pair.key))
    certificates.refresh(100.0)
    first = certificates.server
    # Longer: the kernel's clock of files stands still for up to 10 ms.
    server_pair.certificate.write_bytes(server_pair.certificate.read_bytes() + b"\n")
    certificates.refresh(100.9)
    assert certificates.server is first
    certificates.refresh(101.1)
    assert certificates.server is not first


@looped
async def test_a_server_with_a_context_of_its_own_shows_what_is_renewed(
    tmp_path: Path, server_pair: Pair
):
    (tmp_path / "new").mkdir()
    renewed = issue(tmp_path / "new", "localhost")
    certificates = Certificates(TlsConfig(server_pair.certificate, server_pair.key))
    serving = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=certificates.following()
    )
    port = serving.sockets[0].getsockname()[1]

    async def shown(pair: Pair, server_name: str) -> None:
        context = trusting(pair)
        context.check_hostname = False
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=server_name
        )
        writer.close()

    async with serving:
        await shown(server_pair, "localhost")
        server_pair.certificate.write_bytes(b"\n" + renewed.certificate.read_bytes())
        server_pair.key.write_bytes(renewed.key.read_bytes())
        certificates.refresh(100.0)
        # Also where the client does not say which name it wants.
        for name in ("localhost", "127.0.0.1"):
            await shown(renewed, name)


@pytest.mark.parametrize("is_named", [True, False])
@looped
async def test_nodes_speak_tls_to_each_other_where_it_is_required(
    tmp_path: Path, server_pair: Pair, is_named: bool
):
    more = {"client_ca": server_pair.certificate}
    if is_named:
        more["nodes_ca"] = server_pair.certificate
    given = TlsConfig(server_pair.certificate, server_pair.key, required=True, **more)
    context = node_context(given)
    assert context is not None
    async with (
        tls_app(tmp_path, server_pair, required=True, **more) as app,
        connect(app.server.listeners[0], tls=context) as node,
    ):
        assert (await node.ask(GetAllTopicList())).code == 0


def test_nodes_speak_plain_text_where_it_is_allowed(server_pair: Pair):
    assert node_context(None) is None
    assert node_context(TlsConfig(server_pair.certificate, server_pair.key)) is None


def test_a_first_byte_that_is_there_is_not_waited_for():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(b"PRI")
        with pytest.raises(StopIteration) as told:
            first_byte(ours, 60).send(None)
        assert told.value.value == b"P"
        assert ours.recv(9) == b"PRI"
        theirs.close()
        with pytest.raises(ConnectionResetError):
            first_byte(ours, 60).send(None)
