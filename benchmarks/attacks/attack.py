"""What an attack is: bytes for each of many connections, sent as fast as they go.

An attack is known when it signs its requests as a user that may send to and receive
from every topic, and nothing else; and unknown when it has no credentials.
"""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import Header, row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KNOWN, UNKNOWN = "known", "unknown"
BOTH = (KNOWN, UNKNOWN)
PASSWORD = "hush-hush-hush"
ADMIN, ATTACKER, BYSTANDER = "admin-user", "attacker", "bystander"
RULES = f"""accounts:
- {{accessKey: {ADMIN}, secretKey: {PASSWORD}, admin: true}}
- {{accessKey: {BYSTANDER}, secretKey: {PASSWORD}, defaultTopicPerm: PUB|SUB}}
- accessKey: {ATTACKER}
  secretKey: {PASSWORD}
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: PUB|SUB
"""
"""A `plain_acl.yml`."""
_WAIT_S = 0.2
_AGAIN_S = 0.01


class Target(NamedTuple):
    """Whom to attack, and as whom."""

    port: int
    http_port: int
    user: str | None
    """None: nobody is known."""

    def request(
        self,
        what: Header | RequestCode,
        body: bytes = b"",
        fields: dict[str, str] | None = None,
        *,
        one_way: bool = False,
    ) -> bytes:
        """A request's frame, signed by the user."""
        if isinstance(what, Header):
            code, fields = row_of(type(what)).code, to_fields(what)
        else:
            code, fields = what, fields or {}
        if self.user is not None:
            who = Credentials(access_key=self.user, secret_key=PASSWORD)
            fields = signed(fields, body, who)
        flag = ONE_WAY_FLAG if one_way else 0
        return encode_frame(int(code), 1, flag=flag, fields=fields, body=body)

    def metadata(self) -> dict[str, str]:
        """What a gRPC call says of who makes it."""
        said = {"x-mq-client-id": "attacker", "x-mq-language": "JAVA"}
        if self.user is not None:
            date = "20261122T050000Z"
            signature = hmac.digest(PASSWORD.encode(), date.encode(), "sha1").hex()
            said["x-mq-date-time"] = date
            said["authorization"] = (
                f"MQv2-HMAC-SHA1 Credential={self.user}, "
                f"SignedHeaders=x-mq-date-time, Signature={signature}"
            )
        return said


class Attack(NamedTuple):
    """What is sent, on how many connections."""

    name: str
    stream: Callable[[Target, int], Iterator[bytes]]
    """What one connection sends, by its number; nothing means to wait a little."""
    connections: int = 16
    by: tuple[str, ...] = (KNOWN,)
    prepare: Callable[[Target], None] | None = None
    """Done before it begins, by the attacker."""
    reads: bool = True
    """Whether it reads the answers."""
    stays_s: float = 1e6
    """How long a connection stays when everything has been sent, unless it is closed;
    then there comes another."""
    to_page: bool = False
    """Whether it goes to the web page's port."""


async def run(attack: Attack, target: Target) -> None:
    """Attack until cancelled."""
    port = target.http_port if attack.to_page else target.port
    async with asyncio.TaskGroup() as group:
        for number in range(attack.connections):
            group.create_task(_keep_sending(attack, target, port, number))


async def _keep_sending(attack: Attack, target: Target, port: int, number: int) -> None:
    while True:
        # What uvloop raises of a connection that was closed is no OSError.
        with suppress(OSError, RuntimeError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await _send(attack, attack.stream(target, number), reader, writer)
            finally:
                writer.close()
        await asyncio.sleep(_AGAIN_S)


async def _send(
    attack: Attack,
    chunks: Iterator[bytes],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    ended = asyncio.create_task(_discard(reader)) if attack.reads else None
    try:
        for chunk in chunks:
            if not chunk:
                await asyncio.sleep(_WAIT_S)
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0)
            if ended is not None and ended.done():
                return
        if ended is not None:
            await asyncio.wait([ended], timeout=attack.stays_s)
        else:
            await asyncio.sleep(attack.stays_s)
    finally:
        if ended is not None:
            ended.cancel()


async def _discard(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(1 << 20):
            pass
