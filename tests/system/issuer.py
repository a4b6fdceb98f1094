"""An OAuth2 issuer: its metadata, and a token end point for client credentials."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.test_tls import Pair

METADATA = "/realm/.well-known/openid-configuration"
TOKENS = "/realm/tokens"
CLIENT = {"client_id": "ropeway", "client_secret": "a secret of the issuer's client"}


class Issuer:
    """One issuer with one client, until `close`; it knows what it was asked.

    Args:
        pair: What it shows, of 127.0.0.1.
        make: Makes a token that ends after so many seconds.
        seconds: For how long tokens are good.
    """

    def __init__(
        self, pair: Pair, make: Callable[[float], str], seconds: float
    ) -> None:
        self.seconds = seconds
        self.given: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.is_away = False
        """Whether it answers that it cannot."""
        self.make = make
        self.metadata: dict[str, str] | None = None
        """What it says of itself, instead of the truth."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing: it is no part of a test."""

            def answer(self, status: int, what: dict[str, Any]) -> None:
                body = json.dumps(what).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if self.path != METADATA or issuer.is_away:
                    self.answer(503, {})
                    return
                truth = {"token_endpoint": f"{issuer.host}{TOKENS}"}
                said = issuer.metadata
                self.answer(200, truth if said is None else said)

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(parse_qsl(text))
                issuer.forms.append(form)
                if self.path != TOKENS:
                    self.answer(404, {})
                elif form.get("client_secret") != CLIENT["client_secret"]:
                    self.answer(401, {"error": "invalid_client", **form})
                else:
                    issuer.given.append(issuer.make(issuer.seconds))
                    answer = {"access_token": issuer.given[-1], "token_type": "Bearer"}
                    self.answer(200, {**answer, "expires_in": str(issuer.seconds)})

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.host = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        """What clients are told."""
        return f"{self.host}/realm"

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
