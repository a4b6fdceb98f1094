"""Migrations from RocketMQ that checks who asks (ACL 2.0 and 1.0), and back."""

from __future__ import annotations

import asyncio
import json
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.main import main
from tests.gateway.cli.test_migrate import lead
from tests.pages import DOCS, blocks
from tests.patience import have_patient_commands
from tests.system.rocketmq import SMALL, RocketMQ, access_control
from tests.system.rocketmq_4 import RocketMQ4
from tests.system.ropeway import PATIENT, Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.server, pytest.mark.jvm, pytest.mark.slow]

ROOT, STRANGER, SECRET = "rootroot", "stranger", "hush-hush-hush"
"""ACL 1.0 takes no names of 6 characters or less."""
FROM = ("--source", "rocketmq")
ACCOUNTS = f"""\
accounts:
- accessKey: {ROOT}
  secretKey: {SECRET}
  admin: true
- accessKey: ropeway
  secretKey: {SECRET}
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - goes=PUB
"""
"""The node's account has rights to one topic."""
PAGE = DOCS / "how-to" / "migrate.md"
(SETTINGS,) = [one.text for one in blocks(PAGE, "toml")]
"""How a node reaches such a source."""
ACCOUNT, RIGHTS = (
    shlex.split(line)[1:]
    for one in blocks(PAGE, "")
    for line in one.text.splitlines()
    if " create ropeway " in line
)
"""What gives it an account there."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    settings = {**SMALL, "brokerName": "source-0", **access_control(ROOT, SECRET)}
    server = RocketMQ(tmp_path_factory.mktemp("source"), settings=settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ4]:
    """One whose accounts are in plain_acl.yml."""
    settings = {"brokerName": "source-0"}
    folder = tmp_path_factory.mktemp("older")
    server = RocketMQ4(folder, accounts=ACCOUNTS, settings=settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def known(source: RocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return contexts(source, tmp_path, monkeypatch)


@pytest.fixture
def known_of_older(
    older: RocketMQ4, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    return contexts(older, tmp_path, monkeypatch)


def contexts(source: RocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Contexts for the source, and a folder with the password."""
    have_patient_commands(monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source-key").write_text(SECRET)
    name_server, file = source.name_server, str(tmp_path / "source-key")
    of = {
        name: Context(name_server=name_server, access_key=user, secret_key_file=file)
        for name, user in (("rocketmq", ROOT), ("stranger", STRANGER))
    }
    context_file.save(Contexts(contexts=of))
    return tmp_path


@contextmanager
def target(folder: Path, source: RocketMQ) -> Iterator[tuple[str, ...]]:
    """Options for a node that is set up as the page says, but for TLS."""
    settings, _, _ = SETTINGS.partition("[migration.tls]")
    settings = settings.replace("mq-old:9876", source.name_server)
    file = folder / "node.toml"
    file.write_text(PATIENT + settings.replace("/etc/ropeway", str(folder)))
    options = ("--config", str(file), "--broker", "target-0")
    server = Ropeway(folder / "node", options=options)
    server.start()
    try:
        yield ("-n", server.name_server)
    finally:
        server.stop()
    assert SECRET not in (folder / "node" / "ropeway.log").read_text()


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, (done.output, done.exception)
    assert SECRET not in done.output
    return done


def bodies(topic: str, *where: str) -> list[str]:
    return run("consume", topic, "--exit-at-end", *where).stdout.splitlines()


def test_topics_move_and_go_back_where_the_source_checks_who_asks(source, known):
    there = ("--context", "rocketmq")
    topics = ("goes", "comes")
    for topic in topics:
        run("topic", "create", topic, "--queues", "1", *there)
        run("produce", topic, "before", *there)
    run("group", "create", "readers", *there)
    run(*ACCOUNT)
    with target(known, source) as here:
        run("group", "create", "readers", *here)
        plan = run("migrate", "plan", *FROM, *here).stdout
        assert '"goes":' in plan
        assert '"ropeway":' in plan
        done = run("migrate", "plan", "--source", "stranger", *here, code=6)
        (line,) = done.stderr.splitlines()
        assert f"User:{STRANGER} is not found" in line
        group = ("--group", "readers")
        run("migrate", "mirror", *topics, *FROM, *group, "--exit-at-end", *here)
        moving = ("migrate", "cut-over", *topics, *FROM, *group, "--settle", "0", *here)
        # The node has no rights yet, and nothing has changed for producers.
        done = run(*moving, code=1)
        assert "lets this node send nothing to topic goes" in done.stderr
        assert "migration.access_key says as whom" in done.stderr
        standing = json.loads(run("migrate", "status", *FROM, *here, "--json").stdout)
        assert {row["stage"] for row in standing} == {"mirrored"}
        run(*RIGHTS)
        # What producers send is sent on with the node's own signature.
        for topic in topics:
            asyncio.run(lead(here[1], topic))
        run("produce", "goes", "sent on", *here)
        run(*moving)
        for topic in topics:
            run("produce", topic, "after", *here)
        run("consume", "comes", *group, "--count", "1", *here)
        run("migrate", "finish", "goes", *FROM, "--yes", *here)
        assert bodies("goes", *here) == ["before", "sent on", "after"]
        assert bodies("goes", *there) == ["before", "sent on"]
        back = ("migrate", "rollback", "comes", *FROM, *group, "--settle", "0", *here)
        # An account that has lost its rights: messages are stored here still.
        lost = ("ropeway", "--resource", "Topic:*", "--yes")
        run("acl", "delete", *lost, *there)
        done = run(*back, code=1)
        assert "lets this node send nothing to topic comes" in done.stderr
        run(*RIGHTS)
        run(*back)
        assert bodies("comes", *there) == ["before", "after"]
        (at,) = json.loads(
            run("offset", "show", "readers", "comes", "--json", *there).stdout
        )
        assert at["committed"] == 1


def test_a_topic_moves_and_goes_back_where_accounts_are_of_acl_1(older, known_of_older):
    there, topics = ("--context", "rocketmq"), ("goes", "stays")
    for topic in topics:
        run("topic", "create", topic, "--queues", "1", *there)
        run("produce", topic, "before", *there)
    run("group", "create", "readers", *there)
    with target(known_of_older, older) as here:
        run("group", "create", "readers", *here)
        plan = run("migrate", "plan", *FROM, *here).stdout
        assert '"goes":' in plan
        assert "users and policies (those of 4.x are in plain_acl.yml)" in plan
        group = ("--group", "readers")
        run("migrate", "mirror", *topics, *FROM, *group, "--exit-at-end", *here)
        run("migrate", "verify", *topics, *FROM, *group, *here)
        done = run("migrate", "plan", "--source", "stranger", *here, code=6)
        assert "No acl config for stranger" in done.stderr
        moving = (*FROM, *group, "--settle", "0", *here)
        done = run("migrate", "cut-over", "stays", *moving, code=1)
        assert "lets this node send nothing to topic stays" in done.stderr
        assert "No default permission for topic" in done.stderr
        asyncio.run(lead(here[1], "goes"))
        run("produce", "goes", "sent on", *here)
        run("migrate", "cut-over", "goes", *moving)
        run("produce", "goes", "after", *here)
        assert bodies("goes", *here) == ["before", "sent on", "after"]
        run("migrate", "rollback", "goes", *moving)
        assert bodies("goes", *there) == ["before", "sent on", "after"]
        assert bodies("stays", *there) == ["before"]
