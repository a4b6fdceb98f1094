"""`ropeway migrate plan`: from a node with TLS and access control to one without."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.client import Admin, admin_topics
from ropeway.client.admin_cut_over import PASSED_ON
from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.gateway.cli.printed import valid
from tests.gateway.cli.secured import NOBODY, PASSWORD, ROOT, Secured, secured
from tests.pages import DOCS, blocks
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ropeway.testing import Gateway

OTHERS = (
    "ropeway serve",
    "create ropeway",
    "--source rocketmq o",
    "--source east",
    "group create",
    "topic update",
)
"""Commands of the page that other tests run."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("source")) as made:
        yield made


SENDS_ON = """\
[limits]
send_wait_ms = 60_000
[migration]
name_server = "{address}"
access_key = "ropeway"
secret_key_file = "{folder}/password"
[migration.tls]
ca = "{folder}/ca.pem"
"""
"""How a node that cuts over asks the source."""


@pytest.fixture
def sending_on(source: Secured, tmp_path: Path) -> Iterator[Gateway]:
    file = tmp_path / "node.toml"
    file.write_text(SENDS_ON.format(address=source.address, folder=source.folder))
    options = ("--config", str(file), "--broker", "target-0")
    with running_gateway(options=options) as gateway:
        yield gateway


@pytest.fixture
def target() -> Iterator[Gateway]:
    with running_gateway() as gateway:
        yield gateway


def known(source: Secured) -> None:
    """Save contexts for the source, as several users."""
    common = {"name_server": source.address, "tls_ca": str(source.folder / "ca.pem")}
    keys = {"secret_key": PASSWORD}
    context_file.save(
        Contexts(
            contexts={
                "old": Context(**common, access_key=ROOT, **keys),
                "few-rights": Context(**common, access_key=NOBODY, **keys),
                "wrong": Context(**common, access_key=ROOT, secret_key="x"),
                "plain": Context(name_server=source.address),
            }
        )
    )


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def everything(source: Secured) -> str:
    """All that a source says of what it has, but for clocks and rates."""
    lines = ("topic list --all --sizes", "group list --lag", "user list", "acl list")
    found = [run("--context", "old", *line.split(), "--json").stdout for line in lines]
    return re.sub(r'"in_\w+":[\d.]+', "", "\n".join(found))


def test_a_plan_is_edited_and_applied_and_the_source_stays_as_it_is(
    source, target, tmp_path
):
    known(source)
    secret = source.folder / "password"
    for line in (
        "topic create orders --queues 4 --attribute message.type=FIFO",
        "topic create table --attribute cleanup.policy=COMPACTION",
        "produce table 3 --key apple",
        "group create kitchen --retries 3 --in-order",
        f"user create alice --password-file {secret}",
        "acl create alice --resource Topic:orders --action Sub --source 10.0.0.0/8",
    ):
        run("--context", "old", *line.split())
    before = everything(source)
    to = ("-n", target.name_server)
    done = run("migrate", "plan", "--source", "old", *to)
    assert everything(source) == before
    assert done.stderr.endswith(" planned, 0 left out, 0 problems\n")
    assert PASSWORD not in done.output
    assert "read by kitchen" not in done.stdout
    assert "topic table is compacted" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())

    # Access control is not switched on at the target.
    kept, _, _ = done.stdout.partition("\nusers:")
    file = tmp_path / "plan.yaml"
    file.write_text(kept)
    applied = run("apply", "-f", str(file), "--yes", *to).stdout
    assert "topic orders created" in applied
    assert run("diff", "-f", str(file), *to).stdout == ""
    shown = json.loads(run("topic", "show", "orders", *to, "--json").stdout)
    assert shown["brokers"][0]["attributes"] == {"message.type": "FIFO"}
    settings = json.loads(run("group", "show", "kitchen", *to, "--json").stdout)
    assert settings["settings"]["retries"] == 3

    run("produce", "orders", "x", *to)
    words = ("migrate", "plan", "--source", "old", *to)
    again = run(*words, "--json", code=4)
    valid(words, again.stdout)
    found = json.loads(again.stdout)
    assert {one["topic"]: one["moves"] for one in found["topics"]} == {
        "orders": False,
        "table": True,
    }
    assert "topic orders exists at the target with other contents: 1 message" in str(
        found["checks"]
    )
    assert "alice" in {one["user"] for one in found["user_policies"]}
    assert "1 left out, 1 problem" in again.stderr


@pytest.mark.parametrize(
    ("context", "code", "said"),
    [
        ("few-rights", 6, "not allowed"),
        ("wrong", 6, "not allowed"),
        ("plain", 7, "TLS wanted"),
        ("nobody", 2, "context 'nobody' does not exist; there are: few-rights, old"),
    ],
)
def test_a_source_that_refuses_is_told_in_one_line(
    source, ropeway_gateway, context, code, said
):
    known(source)
    words = ("migrate", "plan", "--source", context)
    done = run(*words, "-n", ropeway_gateway.name_server, code=code)
    (line,) = done.stderr.splitlines()
    assert said in line
    assert done.stdout == ""


def test_credentials_of_the_target_do_not_go_to_the_source(
    source, ropeway_gateway, monkeypatch
):
    known(source)
    for name, value in source.environment(ROOT).items():
        monkeypatch.setenv(name, value)
    contexts = context_file.load()
    common = {"tls_ca": contexts.contexts["old"].tls_ca}
    contexts.contexts["unsigned"] = Context(name_server=source.address, **common)
    context_file.save(contexts)
    words = ("migrate", "plan", "--source", "unsigned", "-n", source.address)
    done = run(*words, code=6)
    assert "no access key or token was given" in done.stderr


@pytest.mark.slow
def test_the_commands_of_the_page_lead_from_one_to_the_other(
    target, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops.txt").write_text("unused")
    with running_gateway() as old:
        for line in ("topic create orders --queues 1", "produce orders one --tag a"):
            run(*line.split(), "-n", old.name_server)
        line = "consume orders --group kitchen --count 1"
        run(*line.split(), "-n", old.name_server)
        places = {"mq-old:9876": old.name_server, "mq-new:9876": target.name_server}
        lines = [
            line
            for block in blocks(DOCS / "how-to" / "migrate.md", "")
            for line in block.text.splitlines()
            # Nodes of pages are started by a test of all of them, and mirrors are
            # in `test_cut_over.py`; accounts in `test_migration_secured.py`.
            if not any(words in line for words in OTHERS)
        ]
        assert len(lines) > 7
        for line in lines:
            command, _, file = line.removeprefix("ropeway ").partition(" > ")
            command, _, read = command.partition(" < ")
            words = [places.get(word, word) for word in command.split()]
            stdin = (tmp_path / read).read_bytes() if read else None
            yes = ["--yes"] if words[0] == "apply" else []
            done = CliRunner().invoke(main, [*words, *yes], input=stdin)
            # Everything differs before it is applied.
            assert done.exit_code == (words[0] == "diff"), (line, done.output)
            if file:
                (tmp_path / file).write_text(done.stdout)
    shown = run("consume", "orders", "--format", "{tag} {body}", "--exit-at-end")
    assert shown.stdout == "a one\n"


def test_a_cluster_is_no_source_of_itself(ropeway_gateway):
    address = ropeway_gateway.name_server
    context_file.save(Contexts(contexts={"old": Context(name_server=address)}))
    done = run("migrate", "plan", "--source", "old", "-n", address, code=2)
    assert f"source and target are one cluster: both have {address}" in done.stderr


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """Something that is no RocketMQ, and says this to whoever connects."""

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with accepted:
                accepted.recv(1)
                accepted.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "data", [b"-ERR unknown command\r\n", b"HTTP/1.1 400 \r\n", b""]
)
def test_what_is_no_rocketmq_is_told_so(ropeway_gateway, data):
    with answering(data) as address:
        context_file.save(Contexts(contexts={"old": Context(name_server=address)}))
        words = ("migrate", "plan", "--source", "old")
        done = run(*words, "-n", ropeway_gateway.name_server, code=3)
    assert f"source old: {address}: " in done.stderr
    assert "allowed: a name server of RocketMQ, from 4.9 on" in done.stderr


def test_a_topic_moves_and_goes_back_by_tls_and_a_node_s_own_account(
    source, sending_on
):
    known(source)
    to = ("-n", sending_on.name_server)
    moving = ("moved", "--source", "old", "--settle", "0", *to)
    run("--context", "old", "topic", "create", "moved", "--queues", "1")
    run("migrate", "mirror", "moved", "--source", "old", "--exit-at-end", *to)
    account = f"user create ropeway --password-file {source.folder / 'password'}"
    run("--context", "old", *account.split())
    rights = "acl create ropeway --resource Topic:moved --action"
    run("--context", "old", *rights.split(), "Get")
    done = run("migrate", "cut-over", *moving, code=1)
    assert "source lets this node send nothing to topic moved: " in done.stderr
    run("--context", "old", *rights.split(), "Pub")
    asyncio.run(lead(sending_on.name_server, "moved"))
    run("produce", "moved", "sent on", *to)
    run("migrate", "cut-over", *moving)
    run("produce", "moved", "after", *to)
    run("migrate", "rollback", *moving)
    there = run("--context", "old", "consume", "moved", "--exit-at-end")
    assert there.stdout == "sent on\nafter\n"
    for line in ("topic delete moved --yes", "user delete ropeway --yes"):
        run("--context", "old", *line.split())


async def lead(name_server: str, topic: str) -> None:
    """Take the first step of a cut-over, as a command that was killed after it."""
    async with Admin(name_server, config=PATIENT) as admin:
        await admin_topics.lead_writes(admin, topic, PASSED_ON)
