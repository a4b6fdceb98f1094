"""How clients are set up."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ropeway.client import ConnectionFailedError, Message, Producer, ProducerConfig
from ropeway.gateway.wire.codes import RequestCode
from tests.ropeway.client.fake_server import FakeServer
from tests.ropeway.client.scenario import SENDING, scenario


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1, signed by itself, with its key behind it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = dt.datetime.now(dt.UTC)
    host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@scenario
async def test_a_client_with_tls_speaks_it_with_everyone(certificate):
    trusting = ssl.create_default_context(cafile=certificate)
    config = ProducerConfig(**SENDING, tls=trusting)
    async with (
        FakeServer(tls=serving(certificate)) as server,
        Producer(server.address, "g", config=config) as sender,
    ):
        await sender.send(Message("t", b"x"))
        assert len(server.asked(RequestCode.SEND_MESSAGE_V2)) == 1


@scenario
async def test_a_certificate_that_is_not_trusted_is_refused(certificate):
    config = ProducerConfig(**SENDING, tls=ssl.create_default_context())
    async with (
        FakeServer(tls=serving(certificate)) as server,
        Producer(server.address, "g", config=config) as sender,
    ):
        with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
            await sender.send(Message("t", b"x"))


def test_a_broadcasting_consumers_folder_is_below_home():
    from ropeway.client import ConsumerConfig

    assert ConsumerConfig().offset_dir.expanduser() == Path.home() / ".ropeway/offsets"
