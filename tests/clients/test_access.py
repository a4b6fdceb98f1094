"""Access control by RocketMQ's own rules, as its clients sign and meet it."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from ropeway.client import Admin, Credentials
from tests.audited import lines
from tests.clients.harness import Session, bodies
from tests.clients.programs import GO, JAVA_4, JAVA_5, each
from tests.ropeway.client import scenario
from tests.system.ropeway import PATIENT, Ropeway
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents
    from tests.clients.harness import Event
    from tests.clients.programs import Client

SECRET = "hush-hush-hush"
ROOT, PLAIN, USER = "root-root", "plain-alice", "user-alice"
LEAVING = {PLAIN: "plain-leaving", USER: "user-leaving"}
"""Accounts like these, for tests that take their rights away."""
STRANGER = {"access_key": "stranger", "secret_key": SECRET}
SETTINGS = """\
[topics]
auto_create = false
[transactions]
timeout_ms = 1000
check_interval_ms = 1000
[audit]
file = "{folder}/audit"
[acl]
hooks = ["plain", "users"]
key_file = "{folder}/key"
[acl.options.plain]
file = "{folder}/plain_acl.yml"
[acl.options.users]
superuser = "root-root"
superuser_password_file = "{folder}/password"
migrate_from = "{folder}/users.yml"
"""
ACCOUNT = """\
  - accessKey: {name}
    secretKey: {secret}
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      [orders=PUB|SUB, asked=PUB|SUB, shown=SUB, DefaultCluster_REPLY_TOPIC=PUB]
    groupPerms: [others=DENY]
"""
numbers = itertools.count()


def accounts(*names: str) -> str:
    """A file with these accounts."""
    made = (ACCOUNT.format(name=name, secret=SECRET) for name in names)
    return "accounts:\n" + "".join(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules: one account by ACL 1.0, and one with the same rules by ACL 2.0."""
    from ropeway.acl.vault import new_key

    made = tmp_path_factory.mktemp("rules")
    (made / "key").write_text(new_key())
    (made / "password").write_text(SECRET)
    for file, name in (("plain_acl.yml", PLAIN), ("users.yml", USER)):
        (made / file).write_text(accounts(name, LEAVING[name]))
    (made / "ropeway.toml").write_text(PATIENT + SETTINGS.format(folder=made))
    return made


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Ropeway]:
    """A gateway that guards, with topics that only the superuser can make."""
    server = Ropeway(folder / "server", options=["--config", f"{folder}/ropeway.toml"])
    server.start()

    async def make() -> None:
        root = Credentials(access_key=ROOT, secret_key=SECRET)
        config = structs.replace(scenario.PATIENT, credentials=root)
        async with Admin(server.name_server, config=config) as admin:
            for topic in ("orders", "asked", "shown", "hidden"):
                await admin.create_topic(topic, 1)

    try:
        asyncio.run(make())
        yield server
    finally:
        server.kill()


@pytest.fixture
def signing(agents: Agents, guarded: Ropeway) -> Callable[[Client], Session]:
    """A client's agent, talking to the gateway that guards."""
    return lambda client: Session(agents.of(client), guarded.name_server)


@pytest.fixture
def refused(folder: Path) -> Callable[[], list[Event]]:
    """What the audit log has."""
    return lambda: [
        line for line in lines(folder, "audit") if line["event"] == "refused"
    ]


def failures(session: Session, topic: str, **who: str) -> list[Event]:
    """What becomes of one message."""
    sending = session.call("produce", topic=topic, messages=[{"body": "no"}], **who)
    return sending.finish().events("failed")


@each(JAVA_5, JAVA_4, GO)
@pytest.mark.parametrize("account", [PLAIN, USER], ids=["ACL 1.0", "ACL 2.0"])
def test_who_may_sends_and_receives_and_who_may_not_is_told_so(
    client: Client,
    account: str,
    signing: Callable[[Client], Session],
    refused: Callable[[], list[Event]],
) -> None:
    session = signing(client)
    who = {"access_key": account, "secret_key": SECRET}
    number = next(numbers)
    body, group = f"body {number}", f"readers-{number}"
    session.produce("orders", [{"body": body}], **who)
    consumer = session.start("consume", topic="orders", group=group, **who)
    assert body in bodies(consumer.wait_for_bodies([body]))
    consumer.stop()
    (failed,) = failures(session, "shown", **who)
    said = failed["error"] + failed.get("cause", "")
    assert f"{account} may not Pub Topic:shown" in said
    # Not even where the topic is.
    assert failures(session, "hidden", **who)
    assert failures(session, "orders", **STRANGER)

    consumer = session.start("consume", topic="orders", group="others", **who)
    until(
        lambda: any(
            one.get("principal", "").endswith(account)
            and one.get("resource") == "Group:others"
            for one in refused()
        )
    )
    assert consumer.stop() == []


@each(JAVA_5, JAVA_4, GO)
def test_a_request_is_answered_by_who_received_it(
    client: Client, signing: Callable[[Client], Session]
) -> None:
    session = signing(client)
    who = {"access_key": USER, "secret_key": SECRET}
    number = next(numbers)
    answering = session.start(
        "answer", topic="asked", group=f"repliers-{number}", **who
    )
    asked = session.call(
        "request", topic="asked", messages=[{"body": f"ask {number}"}], **who
    )
    (replied,) = asked.wait_for(1, "replied")
    assert replied["reply"] == f"re: ask {number}"
    # The signature is the cluster's business: who asked reads its own client id.
    assert "!" not in replied["properties"]["REPLY_TO_CLIENT"]
    answering.wait_for(1, "sent")
    answering.stop()
