"""Ways to sign in to Pulsar, each wrong at first, and a node's settings of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.oauth2 import OAuth2Settings
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from tests.gateway.test_tls import Pair, issue
from tests.system.issuer import CLIENT, Issuer
from tests.system.ropeway import PATIENT
from tests.system.secured_pulsar import ADMIN, EXTERNAL, PASSWORD, token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ropeway.storage.pulsar.admin import Admin
    from tests.system.pulsar import Pulsar

HOOK = """\
[acl]
hooks = ["pulsar"]
[acl.options.pulsar]
token_secret_key = "{directory}/key"
tenant = "public"
namespace = "{directory.name}"
"""
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
    """One that gives tokens of whoever may do all."""
    made = Issuer(pair, lambda seconds: token(ADMIN, seconds), seconds=300)
    yield made
    made.close()


@pytest.fixture(params=["certificate", "password", "oauth2"])
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
    write(json.dumps({**CLIENT, "client_secret": "wrong"}))
    oauth2 = OAuth2Settings(
        issuer_url=issuer.url,
        credentials_file=str(file),
        audience="pulsar",
        tls_ca_file=str(pair.certificate),
    )
    return Way(
        {"oauth2": oauth2}, lambda: write(json.dumps(CLIENT)), " 401 invalid_client"
    )


def as_table(way: Way) -> str:
    """A way in as a file of settings has it."""
    lines, tables = [], []
    for name, value in way.settings.items():
        if name != "oauth2":
            lines.append(f'{name} = "{value}"\n')
            continue
        tables.append(
            f'[pulsar.oauth2]\nissuer_url = "{value.issuer_url}"\n'
            f'credentials_file = "{value.credentials_file}"\n'
            f'ca_certificate = "{value.tls_ca_file}"\n'
        )
    return "".join([*lines, *tables])


def settings_file(directory: Path, server: Pulsar, pair: Pair, table: str) -> Path:
    """The settings of a node, all on TLS, in a namespace of its own."""
    space = f"public/{directory.name}"
    server.make_namespace(space)
    by_hand = {"allowAutoTopicCreation": False}
    server.admin("POST", f"namespaces/{space}/autoTopicCreation", by_hand)
    file = directory / "ropeway.toml"
    file.write_text(
        f"{PATIENT}[[listeners]]\nport = 0\n"
        f'[pulsar]\nservice_url = "{server.tls_service_url}"\n'
        f'admin_url = "{server.tls_admin_url}"\nca_certificate = "{pair.certificate}"\n'
        f'listener_name = "{EXTERNAL}"\ntenant = "public"\n'
        f'namespace = "{directory.name}"\n{table}'
    )
    return file


def settings_of(server: Pulsar, pair: Pair, way: Way) -> PulsarLogSettings:
    urls = {"service_url": server.tls_service_url, "admin_url": server.tls_admin_url}
    ca = str(pair.certificate)
    return PulsarLogSettings(tls_ca_file=ca, **urls, **way.settings)


async def permitted(admin: Admin) -> None:
    """Return when we are: an issuer that has refused us is left alone for a second."""
    while True:
        try:
            assert await admin.policies("public/secured")
        except LogUnavailableError:
            await asyncio.sleep(0.1)
        else:
            return
