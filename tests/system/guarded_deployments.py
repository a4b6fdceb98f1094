"""Gateways with access control, as they are deployed, and who may do what there.

Of each: `ROOT` may do everything, `BANK` uses the topic and the group `bank`, `SENDER`
only sends to that topic, `ALICE` uses those that are called `mine`, `READER` uses that
topic and may lose its rights, `MANY` uses every topic and group, and `NOBODY` none.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ropeway.acl.vault import new_key
from ropeway.client.credentials import Credentials
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic
from ropeway.gateway.wire.commands.auth import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    UpdateUser,
)
from tests import guarded
from tests.acl.pulsar.issuing import SECRET, token
from tests.guarded import ALICE, NOBODY, PASSWORD, ROOT
from tests.remoting import TIMEOUT_S, connect
from tests.requests import batch_of, sending
from tests.system.permissions import Permissions
from tests.system.process import ports_in_a_row
from tests.system.pulsar import Pulsar
from tests.system.ropeway import PATIENT, Ropeway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from ropeway.gateway.wire.header import Header
    from tests.remoting import Frame, Remoting
    from tests.system.zookeeper import ZooKeeper

BANK, SENDER, READER, MANY = "bank", "sender", "reader", "many"
RIGHTS = {
    BANK: ("Topic:bank", "Group:bank", "Group:team_billing"),
    SENDER: ("Topic:bank Pub",),
    ALICE: ("Topic:mine", "Group:mine", "Group:team", "Topic:billing"),
    READER: ("Topic:mine", "Group:mine"),
    MANY: ("Topic:*", "Group:*", "Cluster:*"),
    NOBODY: (),
}
TOPICS = ("bank", "mine", "billing", "secret")
GROUPS = ("bank", "mine", "team", "team_billing", "secret")

SETTINGS = """\
grpc = true
[unauthenticated]
# A test knocks with every request there is.
refusals = 10000
[transactions]
timeout_ms = 100
check_interval_ms = 1000
check_max = 3
[acl]
hooks = ["{hook}"]
"""
USERS = """\
key_file = "{directory}/key"
[acl.options.users]
superuser = "root"
superuser_password_file = "{directory}/password"
"""
TOKENS = """\
[acl.options.pulsar]
token_secret_key = "{directory}/signing-key"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "{namespace}"
refresh_s = 1.0
"""
ON_PULSAR = """\
[pulsar]
service_url = "{service_url}"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "{namespace}"
[zookeeper]
session_ms = 10000
"""
numbers = itertools.count(1)
SPACE = "public/{namespace}"


class Deployment:
    """Processes that guard, with the same topics, groups and rules.

    Args:
        nodes: Where each listens, host:port.
        pages: Where the page of each is.
        keys: What each principal shows: an access key and a secret.
        permit: Has Pulsar say who may do what, once topics are there; None where
            rules of users do.
        signing_key: The file of the key that verifies tokens; None without those.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        pages: Sequence[str],
        keys: dict[str, tuple[str, str]],
        *,
        permit: Permissions | None = None,
        signing_key: Path | None = None,
    ) -> None:
        self._signing_key = signing_key
        self.nodes = nodes
        self.pages = pages
        self.keys = keys
        self.permit = permit

    def knock(self, node: str) -> AbstractAsyncContextManager[Remoting]:
        """A connection to a node."""
        host, _, port = node.rpartition(":")
        there: Any = SimpleNamespace(host=host, port=int(port))
        return connect(there)

    @asynccontextmanager
    async def everywhere(self) -> AsyncIterator[list[tuple[str, Remoting]]]:
        """A connection to each node."""
        async with AsyncExitStack() as stack:
            yield [
                (node, await stack.enter_async_context(self.knock(node)))
                for node in self.nodes
            ]

    async def until_allowed(self, client: Remoting, who: str, header: Header) -> None:
        """Wait until a node knows that a principal may."""
        denied = ResponseCode.NO_PERMISSION
        async with asyncio.timeout(TIMEOUT_S):
            answer = await self.ask(client, who, header)
            while answer.code == denied:
                await asyncio.sleep(0.05)
                answer = await self.ask(client, who, header)
        assert answer.code == 0, answer

    async def ask(
        self, client: Remoting, who: str, header: Header, body: bytes = b""
    ) -> Frame:
        """Have a principal ask for something."""
        name, password = self.keys[who]
        return await guarded.ask(client, name, header, body, password=password)

    def credentials(self, who: str) -> Credentials:
        """What a principal signs with."""
        name, password = self.keys[who]
        return Credentials(access_key=name, secret_key=password)

    def forged(self, who: str) -> str:
        """An access key of a principal, from who does not know its secret."""
        if self.permit is not None:
            return token({"sub": who}, secret=b"guessed" * 5)
        return self.keys[who][0]

    async def prepare(self) -> None:
        """Make users, topics and groups; return when all nodes know them."""
        async with self.knock(self.nodes[0]) as client:
            for name, rights in RIGHTS.items() if self.permit is None else ():
                await self.done(client, ROOT, CreateUser(name), _user(name))
                if rights:
                    await self.done(client, ROOT, CreateAcl(f"User:{name}"), _acl(name))
        for node in self.nodes:
            async with self.knock(node) as client:
                for name in TOPICS:
                    made = CreateTopic(
                        topic=name,
                        default_topic="TBW102",
                        read_queue_nums=1,
                        write_queue_nums=1,
                        perm=6,
                    )
                    await self.done(client, ROOT, made)
                for name in GROUPS:
                    body = json.dumps({"groupName": name}).encode()
                    await self.done(client, ROOT, CreateGroup(), body)
                # So that no ids of others' messages, nor other numbers, are theirs.
                many = sending("secret", batch=True), batch_of(*[b"hello"] * 1234)
                await self.done(client, ROOT, *many)
        if self.permit is not None:
            # One is not there: Pulsar names who uses a group before there is one.
            groups = ("bank", "team_billing", "secret", "absent")
            self.permit.all(dict.fromkeys(groups, BANK))

    async def revoke(self, who: str) -> None:
        """Take all rights from a principal."""
        if self.permit is not None:
            await asyncio.to_thread(self.permit.change, who, "DELETE")
            return
        async with self.knock(self.nodes[0]) as client:
            await self.done(client, ROOT, DeleteAcl(f"User:{who}"))

    async def restore(self, who: str) -> None:
        """Give a principal its rights back."""
        if self.permit is not None:
            await asyncio.to_thread(self.permit.change, who, "POST")
            return
        async with self.knock(self.nodes[0]) as client:
            await self.done(client, ROOT, CreateAcl(f"User:{who}"), _acl(who))

    async def exclude(self, who: str) -> None:
        """Have a principal known no more; with tokens, nobody is."""
        if self._signing_key is not None:
            _private(self._signing_key, SECRET[::-1])
            return
        await self._set_status(who, "disable")

    async def admit(self, who: str) -> None:
        """Have a principal known again."""
        if self._signing_key is not None:
            _private(self._signing_key, SECRET)
            return
        await self._set_status(who, "enable")

    async def _set_status(self, who: str, status: str) -> None:
        body = json.dumps({"username": who, "userStatus": status}).encode()
        async with self.knock(self.nodes[0]) as client:
            await self.done(client, ROOT, UpdateUser(who), body)

    async def done(
        self, client: Remoting, who: str, header: Header, body: bytes = b""
    ) -> Frame:
        """Have a principal do something that it may."""
        answer = await self.ask(client, who, header, body)
        assert answer.code == 0, (header, answer)
        return answer


def _user(name: str) -> bytes:
    return json.dumps({"username": name, "password": PASSWORD}).encode()


def _acl(name: str) -> bytes:
    entries = [
        {
            "resource": resource,
            "actions": [action or "All"],
            "sourceIps": ["127.0.0.0/8"],
            "decision": "Allow",
        }
        for resource, _, action in (one.partition(" ") for one in RIGHTS[name])
    ]
    policies = [{"policyType": "Custom", "entries": entries}]
    return json.dumps({"subject": f"User:{name}", "policies": policies}).encode()


def _private(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)


@contextmanager
def _running(
    directory: Path,
    settings: str,
    all_options: Sequence[Sequence[str]],
    brokers: int = 1,
) -> Iterator[tuple[list[str], list[str]]]:
    """Processes of Ropeway; where they listen, and where their pages are."""
    directory.mkdir(parents=True, exist_ok=True)
    _private(directory / "key", new_key())
    _private(directory / "password", PASSWORD)
    file = directory / "settings.toml"
    file.write_text(settings.replace("{directory}", str(directory)) + PATIENT)
    started, nodes, pages = [], [], []
    try:
        for number, options in enumerate(all_options):
            port, page = ports_in_a_row(2)[0], ports_in_a_row(2)[0]
            one = Ropeway(
                directory / f"node-{number}",
                options=[
                    *("--config", str(file), "--http", f"127.0.0.1:{page}"),
                    *options,
                ],
                port=port,
            )
            one.start()
            started.append(one)
            nodes += [f"127.0.0.1:{port + k}" for k in range(brokers)]
            pages += [f"http://127.0.0.1:{page + k}" for k in range(brokers)]
        yield nodes, pages
    finally:
        for one in started:
            one.stop()


@contextmanager
def embedded(directory: Path, *options: str, brokers: int = 1) -> Iterator[Deployment]:
    """Messages and routes in files: one node, or as many workers as brokers."""
    settings = SETTINGS.format(hook="users") + USERS
    with _running(directory, settings, [options], brokers) as (nodes, pages):
        yield Deployment(nodes, pages, _users())


def _users() -> dict[str, tuple[str, str]]:
    return {name: (name, PASSWORD) for name in (ROOT, *RIGHTS)}


@contextmanager
def workers(directory: Path) -> Iterator[Deployment]:
    """Two brokers, each a process, under one supervisor."""
    with embedded(directory, "--workers", "2", brokers=2) as made:
        yield made


def secured_pulsar(directory: Path) -> Pulsar:
    """A Pulsar where `root` may do all, and others what they are permitted."""
    name = "org.apache.pulsar"
    own = token({"sub": ROOT})
    return Pulsar(
        directory,
        settings={
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": (
                f"{name}.broker.authentication.AuthenticationProviderToken"
            ),
            "superUserRoles": ROOT,
            "tokenSecretKey": f"data:;base64,{base64.b64encode(SECRET).decode()}",
            "brokerClientAuthenticationPlugin": (
                f"{name}.client.impl.auth.AuthenticationToken"
            ),
            "brokerClientAuthenticationParameters": f"token:{own}",
        },
        token=own,
    )


def _on_pulsar(
    directory: Path, pulsar: Pulsar, namespace: str, hook: str, options: str
) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    _private(directory / "token", token({"sub": ROOT}))
    _private(directory / "signing-key", SECRET)
    text = SETTINGS.replace("{hook}", hook) + options + ON_PULSAR
    for key, value in {
        "service_url": pulsar.service_url,
        "admin_url": pulsar.admin_url,
        "namespace": namespace,
    }.items():
        text = text.replace(f"{{{key}}}", value)
    return text


@contextmanager
def two_nodes(
    directory: Path, pulsar: Pulsar, zookeeper: ZooKeeper
) -> Iterator[Deployment]:
    """A broker's master and its slave, on Pulsar, with users in ZooKeeper."""
    namespace = f"two-{os.getpid()}-{next(numbers)}"
    routes = f"zookeeper://{zookeeper.address}/{namespace}"
    settings = _on_pulsar(directory, pulsar, namespace, "users", USERS)
    options = [("--routes", routes, "--node", f"node-{k}") for k in range(2)]
    with _running(directory, settings, options) as (nodes, pages):
        yield Deployment(nodes, pages, _users())


@contextmanager
def with_tokens(directory: Path, pulsar: Pulsar) -> Iterator[Deployment]:
    """One node on Pulsar, where Pulsar's tokens and permissions count."""
    namespace = f"tokens-{os.getpid()}-{next(numbers)}"
    space = SPACE.format(namespace=namespace)
    pulsar.make_namespace(space)
    settings = _on_pulsar(directory, pulsar, namespace, "pulsar", TOKENS)
    with _running(directory, settings, [()]) as (nodes, pages):
        # The secret is not used; clients want one.
        keys = {name: (token({"sub": name}), "unused") for name in (ROOT, *RIGHTS)}
        yield Deployment(
            nodes,
            pages,
            keys,
            permit=Permissions(pulsar, space, RIGHTS),
            signing_key=directory / "signing-key",
        )
