"""Who we are is shown to brokers and to the admin REST alike, and never told."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.authentication import Basic, Token, Unauthenticated, headers
from ropeway.storage.pulsar.errors import PulsarUnavailableError
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.pulsar.authentication import Authentication


@pytest.mark.parametrize(
    ("who", "method", "proof", "shown"),
    [
        (Unauthenticated(), "none", b"", None),
        (Unauthenticated("tls"), "tls", b"", None),
        (Token(lambda: " a.b.c\n"), "token", b"a.b.c", "Bearer a.b.c"),
        (
            Basic("someone", lambda: "pass:word\n"),
            "basic",
            b"someone:pass:word",
            f"Basic {base64.b64encode(b'someone:pass:word').decode()}",
        ),
    ],
)
@looped
async def test_a_proof_is_what_pulsars_provider_reads(
    who: Authentication, method: str, proof: bytes, shown: str | None
):
    assert (who.method, await who.proof()) == (method, proof)
    who.refused(proof)
    found = headers(who, await who.proof())
    assert found.get("Authorization") == shown
    assert found.get("X-Pulsar-Auth-Method-Name") == (
        None if method == "none" else method
    )


@pytest.mark.parametrize("text", ["", " \n", "se\ncret", "se\0cret"])
@looped
async def test_what_cannot_be_shown_is_refused_without_being_told(text: str):
    for who in (Token(lambda: text), Basic("someone", lambda: text)):
        with pytest.raises(PulsarUnavailableError, match="allowed: one line") as raised:
            await who.proof()
        assert "cret" not in str(raised.value)


@looped
async def test_a_file_that_is_being_replaced_is_no_end(tmp_path: Path):
    file = tmp_path / "token"
    who = Token(file.read_text)
    for unreadable in (file.mkdir, file.rmdir):
        unreadable()
        with pytest.raises(PulsarUnavailableError, match="cannot read the token: "):
            await who.proof()
    file.write_text("renewed")
    assert await who.proof() == b"renewed"
