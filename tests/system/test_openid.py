"""A node signs in to Pulsar with an OpenID provider's tokens, which Pulsar verifies.

Pulsar finds the provider's keys by discovery, and so does the node its token end point.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.remoting import looped
from tests.system.openid import OpenIDProvider
from tests.system.pulsar import Pulsar
from tests.system.ropeway import PATIENT
from tests.system.secured_pulsar import AS_ITSELF
from tests.system.test_doctor import here
from tests.system.test_namespaces import bodies, place_order, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.slow]

NODE, BROKER, STRANGER = "ropeway", "broker", "stranger"
AUDIENCE = "pulsar"
SECONDS = 3600
OPENID = "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID"
SETTINGS = """\
routes = "{directory}/routes.db"
[[listeners]]
port = 0
[pulsar]
service_url = "{server.service_url}"
admin_url = "{server.admin_url}"
[pulsar.oauth2]
issuer_url = "{provider.url}"
credentials_file = "{directory}/credentials"
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[OpenIDProvider]:
    clients = [NODE, BROKER, STRANGER]
    made = OpenIDProvider(tmp_path / "openid", clients, AUDIENCE, SECONDS)
    (tmp_path / "openid").mkdir()
    made.start()
    yield made
    made.kill()


@pytest.fixture
def server(tmp_path: Path, provider: OpenIDProvider) -> Iterator[Pulsar]:
    """A Pulsar that takes the tokens of that provider and nothing else."""
    own = provider.token(BROKER)
    made = Pulsar(
        tmp_path / "pulsar",
        settings={
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": OPENID,
            "superUserRoles": f"{BROKER},{NODE}",
            "openIDAllowedTokenIssuers": provider.url,
            "openIDAllowedAudiences": AUDIENCE,
            "openIDRequireIssuersUseHttps": "false",
            "brokerClientAuthenticationPlugin": AS_ITSELF,
            "brokerClientAuthenticationParameters": f"token:{own}",
        },
        token=own,
    )
    try:
        made.start()
        yield made
    finally:
        made.kill()


@looped
async def test_a_node_goes_in_with_tokens_of_an_openid_provider(
    tmp_path: Path, server: Pulsar, provider: OpenIDProvider
):
    settings = tmp_path / "ropeway.toml"
    settings.write_text(
        SETTINGS.format(directory=tmp_path, server=server, provider=provider) + PATIENT
    )

    def sign_in_as(client_id: str) -> None:
        shown = {"client_id": client_id, "client_secret": "unseen"}
        (tmp_path / "credentials").write_text(json.dumps(shown))
        (tmp_path / "credentials").chmod(0o600)

    sign_in_as(STRANGER)
    assert any("does not permit" in text for _, text, _ in here(settings))
    sign_in_as(NODE)
    assert here(settings) == []
    with running(tmp_path / "node", "--config", str(settings)) as node:
        await place_order(node, b"one")
        assert await bodies(node) == [b"one"]
