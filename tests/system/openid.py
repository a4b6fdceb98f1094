"""An OpenID provider that is not ours: discovery, keys, and client credentials.

no.nav.security's mock-oauth2-server, on the library of Nimbus. It gives a token to
whoever asks, in the name of its client id, and looks at no secret.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from tests import builds
from tests.starts import started_again
from tests.system.process import ForeignProcess, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
START_SECONDS = 120
MAIN = "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"


class OpenIDProvider:
    """One provider on a free port of 127.0.0.1.

    Args:
        directory: For its log.
        clients: Their ids, which their tokens are in the name of.
        audience: What tokens are for.
        seconds: For how long tokens are good.
    """

    def __init__(
        self, directory: Path, clients: Sequence[str], audience: str, seconds: int
    ) -> None:
        self._directory = directory
        self._port = free_ports(1)[0]
        self._process: ForeignProcess | None = None
        mappings = [
            {
                "requestParam": "client_id",
                "match": one,
                "claims": {"sub": one, "aud": [audience]},
            }
            for one in clients
        ]
        callback = {
            "issuerId": "realm",
            "tokenExpiry": seconds,
            "requestMappings": mappings,
        }
        self._environment = {
            "SERVER_HOSTNAME": "127.0.0.1",
            "SERVER_PORT": str(self._port),
            "JSON_CONFIG": json.dumps({"tokenCallbacks": [callback]}),
        }

    @property
    def url(self) -> str:
        """What clients are told: the issuer."""
        return f"http://127.0.0.1:{self._port}/realm"

    @started_again
    def start(self) -> None:
        """Start it, and return when it tells of itself."""
        jars = builds.classpath(HERE / "openid.xml")
        self._process = ForeignProcess(
            "openid",
            [
                *["env", *(f"{k}={v}" for k, v in self._environment.items())],
                *["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
                *["-cp", jars, MAIN],
            ],
            self._directory,
        )
        self._process.wait_until(self._ready, START_SECONDS)

    def kill(self) -> None:
        """End it without warning."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def token(self, client_id: str) -> str:
        """A token of a client, as it would ask for it itself."""
        form = f"grant_type=client_credentials&client_id={client_id}"
        form += "&client_secret=any&scope=any"
        request = urllib.request.Request(f"{self.url}/token", data=form.encode())
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            found: str = json.load(answer)["access_token"]
        return found

    def _ready(self) -> bool:
        where = f"{self.url}/.well-known/openid-configuration"
        try:
            with urllib.request.urlopen(where, timeout=10):
                return True
        except OSError:
            return False
