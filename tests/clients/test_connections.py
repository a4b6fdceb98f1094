"""The other ways a Java client speaks: binary headers, and TLS."""

import dataclasses
import datetime as dt
import ipaddress
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.clients.fixtures import Agents, Server
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import JAVA_4, JAVA_5, Client, each, java
from tests.gateway.test_tls import issue
from tests.system.ropeway import PATIENT, Ropeway

VERSIONS = {JAVA_5: "5.5.0", JAVA_4: "4.9.8"}


def with_options(client: Client, *options: str) -> Client:
    """The same client, started with options of the JVM."""
    return dataclasses.replace(client, start=java(VERSIONS[client], *options))


def round_trip(agent: Session, topic: str, group: str) -> None:
    """Send, and receive what was sent, also after a refusal."""
    messages = numbered(20, tags="TagA", properties={"user": "ü"})
    agent.produce(topic, messages)
    consumer = agent.start("consume", topic=topic, group=group)
    received = consumer.wait_for_bodies(bodies(messages))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(bodies(messages))
    assert {one["properties"]["user"] for one in received} == {"ü"}


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("headers in ROCKETMQ serialisation")
def test_a_client_may_speak_binary_headers(
    client: Client, agents: Agents, server: Server, topic: str, group: str
) -> None:
    binary = with_options(client, "-Drocketmq.serialize.type=ROCKETMQ")
    round_trip(Session(agents.another(binary), server.name_server), topic, group)


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("TLS")
def test_a_client_may_speak_tls_beside_plain_text(
    client: Client,
    agents: Agents,
    start_server: Callable[..., Server],
    tmp_path: Path,
    topic: str,
    group: str,
) -> None:
    server = start_server(tls=certificate(tmp_path))
    secret = with_options(client, "-Dtls.enable=true")
    round_trip(Session(agents.another(secret), server.name_server), topic, group)
    plain = Session(agents.of(client), server.name_server)
    round_trip(plain, f"{topic}-plain", f"{group}-plain")
    server.stop()


@each(JAVA_5)
def test_a_client_shows_its_certificate_where_one_is_asked_for(
    client: Client, agents: Agents, tmp_path: Path, topic: str, group: str
) -> None:
    authority = issue(tmp_path, "authority")
    of_server = issue(tmp_path, "localhost", authority)
    of_client = issue(tmp_path, "client", authority)
    settings = tmp_path / "ropeway.toml"
    settings.write_text(
        f'{PATIENT}[tls]\ncertificate = "{of_server.certificate}"\n'
        f'key = "{of_server.key}"\n'
        f'client_ca = "{authority.certificate}"\nrequired = true\n'
    )
    server = Ropeway(tmp_path / "server", options=["--config", str(settings)])
    server.start()
    showing = with_options(
        client,
        "-Dtls.enable=true",
        "-Dtls.test.mode.enable=false",
        "-Dtls.client.authServer=true",
        f"-Dtls.client.trustCertPath={authority.certificate}",
        f"-Dtls.client.certPath={of_client.certificate}",
        f"-Dtls.client.keyPath={of_client.key}",
    )
    try:
        round_trip(Session(agents.another(showing), server.name_server), topic, group)
    finally:
        server.stop()


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = directory / "certificate.pem", directory / "key.pem"
    certificate_path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_path, key_path
