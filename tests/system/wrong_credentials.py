"""Sends with signatures or tokens that are wrong, as an attacker makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ropeway.client.credentials import signed
from ropeway.gateway.wire.header import to_fields
from tests.acl.pulsar.issuing import encoded, token
from tests.gateway.processors.test_admission import wrongly_signed
from tests.guarded import ROOT

if TYPE_CHECKING:
    from ropeway.gateway.wire.header import Header
    from tests.system.guarded_deployments import Deployment

    Signed = tuple[dict[str, str], bytes]
    """Fields and body of a request."""


def wrong(there: Deployment, who: str, header: Header, body: bytes) -> list[Signed]:
    """A send of a principal, each time with something wrong; it is right but for that.

    The last two are by somebody unknown, and by who does not know the secret.
    """
    right = there.credentials(who)
    good = signed(to_fields(header), body, right)
    if there.permit is None:
        others = (
            structs.replace(right, access_key="absent"),
            structs.replace(right, secret_key="wrong"),
        )
        return [
            *wrongly_signed(good, body),
            *((signed(to_fields(header), body, one), body) for one in others),
        ]
    head, claims, signature = right.access_key.split(".")
    return [
        ({**good, "AccessKey": one}, body)
        for one in (
            "",
            f"{encoded({'alg': 'none'})}.{claims}.",
            right.access_key[:-1],
            f"{head}.{encoded({'sub': ROOT})}.{signature}",
            token({"sub": who, "exp": 1}),
            token({}),
            there.forged("absent"),
            there.forged(who),
        )
    ]
