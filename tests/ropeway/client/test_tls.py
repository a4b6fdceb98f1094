"""TLS of clients from files."""

import ssl

import pytest

from ropeway.client import Admin, ClientConfig, ConnectionFailedError
from ropeway.client.tls import TlsFiles
from tests.gateway.test_tls import issue, tls_app
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENCE


@looped
async def test_a_client_trusts_a_ca_and_looks_for_a_name(tmp_path):
    ca = issue(tmp_path, "ca")
    pair = issue(tmp_path, "mq.example", ca)
    files = TlsFiles(ca=str(ca.certificate))
    async with tls_app(tmp_path, pair, required=True) as app:
        address = app.server.listeners[0].advertised
        config = ClientConfig(
            **PATIENCE, tls=files.context(), tls_server_name="mq.example"
        )
        async with Admin(address, config=config) as admin:
            await admin.topics()
        config = ClientConfig(**PATIENCE, tls=files.context())
        async with Admin(address, config=config) as admin:
            with pytest.raises(ConnectionFailedError, match="not valid for"):
                await admin.topics()


def test_a_certificate_of_the_client_is_read_with_its_key(tmp_path):
    pair = issue(tmp_path, "me")
    files = TlsFiles(certificate=str(pair.certificate), key=str(pair.key))
    assert files.context().minimum_version is ssl.TLSVersion.TLSv1_2
    both = tmp_path / "both.pem"
    both.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    assert TlsFiles(certificate=str(both)).context()


@pytest.mark.parametrize("name", ["ca", "certificate", "key"])
def test_a_file_that_cannot_be_used_is_named(tmp_path, name):
    pair = issue(tmp_path, "me")
    given = {"certificate": str(pair.certificate), "key": str(pair.key)}
    for wrong in ("/none.pem", str(__file__)):
        with pytest.raises(ValueError, match=rf"{wrong}.* cannot be used: .+allowed"):
            TlsFiles(**{**given, name: wrong}).context()
