"""A Pulsar that ends each connection that shows no certificate it trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.authentication import Unauthenticated
from ropeway.storage.pulsar.errors import PulsarError
from ropeway.storage.pulsar.tls import TlsFiles
from tests.gateway.test_tls import Pair, issue
from tests.remoting import looped
from tests.system.pulsar_client import Writer, client_of, numbers, on_uvloop, read_all
from tests.system.secured_pulsar import ADMIN, REFUSED_S, secured_pulsar
from tests.system.test_doctor import here
from tests.system.test_namespaces import bodies, place_order, running
from tests.system.ways_in import settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]
TOPIC = "persistent://public/mutual/topic"
REFUSED = "demands a certificate"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return issue(tmp_path_factory.mktemp("tls"), "localhost", address="127.0.0.1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[Pulsar]:
    secured = secured_pulsar(tmp_path_factory.mktemp("pulsar"), pair, mutual=True)
    try:
        secured.start()
        secured.make_namespace("public/mutual")
        yield secured
    finally:
        secured.kill()


@on_uvloop()
async def test_who_shows_a_certificate_may_write_and_read(
    server: Pulsar, pair: Pair, tmp_path: Path
):
    shown = issue(tmp_path, ADMIN, pair)
    files = TlsFiles(*map(str, (pair.certificate, shown.certificate, shown.key)))
    who = Unauthenticated("tls")
    more: dict[str, Any] = {"tls": files, "authentication": who}
    async with client_of(server.tls_service_url, **more) as client:
        writer = await Writer.open(client, TOPIC)
        writer.send(3)
        await writer.settled()
        assert writer.errors == []
        assert numbers(await read_all(client, TOPIC))[-3:] == [0, 1, 2]


@on_uvloop()
async def test_who_shows_none_is_told_what_is_demanded(server: Pulsar, pair: Pair):
    more: dict[str, Any] = {"tls": TlsFiles(str(pair.certificate))}
    limited = {**more, "request_timeout_s": REFUSED_S}
    async with client_of(server.tls_service_url, **limited) as client:
        with pytest.raises(PulsarError, match=REFUSED):
            await Writer.open(client, TOPIC)
    admin = Admin(server.tls_admin_url, **more)
    try:
        with pytest.raises(LogUnavailableError, match=REFUSED):
            await admin.policies("public/mutual")
    finally:
        await admin.close()


@looped
async def test_a_node_and_doctor_go_in_with_a_certificate_and_not_without(
    tmp_path: Path, server: Pulsar, pair: Pair
):
    settings = settings_file(tmp_path, server, pair, "")
    ((check, text, _),) = here(settings)
    assert (check, REFUSED in text) == ("pulsar", True), text
    shown = issue(tmp_path, ADMIN, pair)
    with settings.open("a") as file:
        file.write(f'certificate = "{shown.certificate}"\nkey = "{shown.key}"\n')
    assert here(settings) == []
    with running(tmp_path / "node", "--config", str(settings)) as node:
        await place_order(node, b"one")
        assert await bodies(node) == [b"one"]
