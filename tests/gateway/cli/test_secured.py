"""Every client command signs in, on a node that wants TLS and checks rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main
from ropeway.gateway.wire.trace import TRACE_TOPIC
from ropeway.testing import running_gateway
from tests.gateway.cli.secured import NOBODY, ROOT, WAYS, secured
from tests.gateway.cli.test_main import ALL
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.gateway.cli.secured import Secured

WALK = {
    "apply": "-f {cluster_file} --yes",
    "diff": "-f {alike_file}",
    "acl create": "target-{way} --resource Topic:a* --action Pub --source 10.0.0.0/8",
    "acl delete": "ruled-{way} --yes",
    "acl list": "",
    "user create": "made-{way} --password-file {password}",
    "user delete": "gone-{way} --yes",
    "user list": "",
    "user update": "target-{way} --disable",
    "acl check": f"--principal {ROOT} --action PUB --resource topic:orders",
    "bench consume": "orders --count 1",
    "bench produce": "orders --count 1",
    "broker drain": "broker-0 --dry-run",
    "broker describe": "broker-0",
    "broker list": "",
    "broker remove": "broker-9 --gone --yes",
    "broker show": "broker-0 --settings",
    "broker undrain": "broker-0",
    "broker update": "broker-0 --set popConsumerKVServiceEnable=true --yes",
    "client describe": "{client_id}",
    "client list": "",
    "cluster show": "",
    "consume": "orders --count 1",
    "doctor": "",
    "explain": "{msg_id} kitchen --topic orders",
    "group create": "made-{way}",
    "group delete": "gone-{way} --yes",
    "group describe": "kitchen",
    "group list": "--lag",
    "group members": "kitchen",
    "group show": "kitchen",
    "group update": "kitchen --retries 3",
    "log status": "",
    "message dlq list": "kitchen",
    "message dlq replay": "kitchen --yes",
    "message latest": "prices apple",
    "message query": "orders order-7",
    "message resend": "{msg_id} --topic orders --to-topic copies --yes",
    "message search": "orders",
    "message send": "orders x",
    "message tail": "orders --count 1",
    "message trace": "{msg_id}",
    "message view": "{msg_id} --topic orders",
    "metrics": "ropeway_connections",
    "migrate cut-over": "copied --source another",
    "migrate finish": "copied --source another --wait 0 --yes",
    "migrate mirror": "elsewhere --source another --exit-at-end",
    "migrate plan": "--source another",
    "migrate rollback": "copied --source another --settle 0",
    "migrate status": "copied --source another --look 0.1",
    "migrate verify": "copied --source another --wait 0",
    "offset export": "kitchen",
    "offset import": "kitchen {seek_file} --yes",
    "offset reset": "kitchen orders --to latest --yes",
    "offset rewind": "kitchen orders --by 1h --yes",
    "offset show": "kitchen orders",
    "produce": "orders x",
    "quota delete": "--topic orders --yes",
    "quota list": "",
    "quota set": "--topic orders --send-bytes 1000000000",
    "route create": "orders --broker broker-0 --queues 4",
    "route delete": "orders --broker broker-0 --yes",
    "route drain": "127.0.0.1:1 --yes",
    "route expand": "wide-{way} --broker broker-0 --queues 9",
    "route move": "broker-0 --to nobody --yes",
    "route rebalance": "orders --yes",
    "route show": "orders",
    "streams top": "--once",
    "timer cancel": "{handle} --yes",
    "timer list": "",
    "top": "--once",
    "transaction list": "",
    "topic compaction": "prices --now",
    "topic create": "made-{way}",
    "topic delete": "gone-{way} --yes",
    "topic describe": "orders",
    "topic expand": "long-{way} --queues 9",
    "topic list": "",
    "topic show": "orders",
    "topic stats": "orders",
    "topic trim": "trimmed-{way} --to latest --yes",
    "topic update": "orders --perm 6",
}
"""A line for each; a new command without one fails."""

REFUSED = {
    "broker remove": "broker-9",
    "migrate finish": "copied",
    "migrate rollback": "copied",
    "route create": "orders",
    "route delete": "orders",
    "route drain": "127.0.0.1:1",
    "route move": "embedded log",
    "route rebalance": "embedded log",
}
"""What a node alone on an embedded log, without a cut-over, cannot do, and what the
error names."""

SPARK = {"pipeline archive", "pipeline load", "pipeline sql", "streams run"}
"""Walked by `test_pipeline.py`: they take minutes. `test_mcp.py` walks `mcp`."""


def ropeway(
    node: Secured, who: str | None, way: str, line: str, settings: Path | None = None
) -> Result:
    environment = {**node.environment(who, way)}
    if settings is not None:
        environment["XDG_CONFIG_HOME"] = str(settings)
    return CliRunner().invoke(main, line.split(), env=environment)


def as_root(node: Secured, line: str) -> list[dict]:
    done = ropeway(node, ROOT, "keys", line)
    assert done.exit_code == 0, (line, done.output, done.exception)
    return [json.loads(one) for one in done.stdout.splitlines() if one[:1] == "{"]


class Prepared(NamedTuple):
    """A node with all that the commands of `WALK` name."""

    node: Secured
    msg_id: str
    handles: dict[str, str]
    client_id: str

    def run(self, who: str, way: str, command: str, *more: str) -> Result:
        """Run a command of `WALK` as somebody, with more options."""
        line = WALK[command].format(
            way=way,
            msg_id=self.msg_id,
            client_id=self.client_id,
            handle=self.handles[way],
            password=self.node.folder / "password",
            seek_file=self.node.folder / "kitchen.tsv",
            cluster_file=self.node.folder / "cluster.yaml",
            alike_file=self.node.folder / "alike.yaml",
        )
        return ropeway(
            self.node, who, way, " ".join([command, line, *more]), self.node.folder
        )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    with (
        pytest.MonkeyPatch.context() as patch,
        running_gateway(topics=["elsewhere:1", "copied:1"]) as another,
        secured(tmp_path_factory.mktemp("secured")) as made,
    ):
        patch.setenv("XDG_CONFIG_HOME", "/dev/null")
        for way in WAYS:
            for topic in ("gone", "wide", "long", "trimmed"):
                as_root(made, f"topic create {topic}-{way}")
            as_root(made, f"produce trimmed-{way} x")
            as_root(made, f"group create gone-{way}")
            secret = made.folder / "password"
            for user in ("target", "ruled", "gone"):
                as_root(made, f"user create {user}-{way} --password-file {secret}")
            rule = "--resource Topic:orders --action Sub"
            as_root(made, f"acl create ruled-{way} {rule}")
        as_root(made, "group create kitchen")
        as_root(made, "topic create copied --queues 1")
        as_root(made, "topic create orders --queues 2")
        as_root(made, "topic create prices --attribute cleanup.policy=COMPACTION")
        as_root(made, "produce prices 3 --key apple")
        (sent,) = as_root(made, "produce orders one --key order-7 --queue 0 --json")
        as_root(made, "consume orders --group kitchen --count 1 --timeout 60")
        as_root(made, "quota set --topic prices --send-bytes 1000000000")
        lines = ["topic\tbroker\tqueue_id\toffset", "orders\tbroker-0\t0\t0", ""]
        (made.folder / "kitchen.tsv").write_text("\n".join(lines))
        (made.folder / "cluster.yaml").write_text("groups: {kitchen: {retries: 7}}")
        known = {"contexts": {"another": {"name_server": another.name_server}}}
        (made.folder / "ropeway").mkdir()
        contexts = made.folder / "ropeway" / "contexts.json"
        contexts.write_text(json.dumps(known))
        # The first command would say that it narrows it.
        contexts.chmod(0o600)
        (made.folder / "alike.yaml").write_text("topics: {orders: }")
        # As a client's trace: what is known of it.
        key = sent["msg_id"]
        step = ["Recall", "5", "region", "kitchen", "orders", key]
        run_traced(made, key, "\x01".join(step) + "\x02")
        late = "produce orders late --delay 3600 --json"
        handles = {way: as_root(made, late)[0]["recall_handle"] for way in WAYS}
        # They are listed once the timer has taken them in, behind the answers.
        listed = (made, ROOT, "keys", "timer list --json")
        until(lambda: len(json.loads(ropeway(*listed).stdout)) == len(WAYS))
        with sending(made) as client_id:
            yield Prepared(made, sent["msg_id"], handles, client_id)


def run_traced(node: Secured, key: str, record: str) -> None:
    line = ["produce", TRACE_TOPIC, record, "--key", key]
    done = CliRunner().invoke(main, line, env=node.environment(ROOT))
    assert done.exit_code == 0, done.output


@contextmanager
def sending(node: Secured) -> Iterator[str]:
    """A producer that is connected; its client id."""
    line = ["produce", "copies", "--group", "idle"]
    with subprocess.Popen(
        [sys.executable, "-m", "ropeway.gateway.cli.main", *line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **node.environment(ROOT)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline()
        deadline = time.monotonic() + 60
        while not (found := json.loads(_listed(node))):
            assert time.monotonic() < deadline
        yield found[0]["client_id"]
        process.stdin.close()


def _listed(node: Secured) -> str:
    done = ropeway(node, ROOT, "keys", "client list --group idle --json")
    assert done.exit_code == 0, done.output
    return done.stdout


TROUBLES = [
    ({"ROPEWAY_TLS": "false"}, "TLS wanted", 7),
    ({"ROPEWAY_TLS_SERVER_NAME": "mq.example"}, "wrong host", 7),
    ({"ROPEWAY_TLS_CA": ""}, "certificate not trusted", 7),
    ({"ROPEWAY_SECRET_KEY": "wrong"}, "not allowed", 6),
    ({"ROPEWAY_NAME_SERVER": "127.0.0.1:1"}, "nobody listens", 3),
]


@pytest.mark.parametrize(("changes", "said", "code"), TROUBLES)
def test_troubles_are_told_apart_in_one_line_with_what_to_do(
    prepared, changes, said, code
):
    environment = {
        **prepared.node.environment(ROOT),
        "ROPEWAY_TLS": "true",
        **changes,
    }
    for line in ("topic list", "produce orders x", "consume orders", "timer list"):
        done = CliRunner().invoke(main, line.split(), env=environment)
        assert done.exit_code == code, done.output
        (printed,) = done.stderr.splitlines()
        assert f": {said}" in printed
        assert ";" in printed
    done = CliRunner().invoke(main, ["doctor"], env=environment)
    assert done.exit_code == 4
    assert f": {said}" in done.stdout
    assert "  -> " in done.stdout


@pytest.mark.parametrize(("changes", "said", "code"), TROUBLES[:4])
def test_the_page_is_reached_likewise(prepared, changes, said, code):
    environment = {**prepared.node.environment(ROOT), **changes}
    done = CliRunner().invoke(main, ["metrics"], env=environment)
    if said == "wrong host" or changes.get("ROPEWAY_TLS"):
        # HTTPS is said by the address, and looks for its host.
        assert done.exit_code == (0 if said == "wrong host" else 7)
        return
    assert done.exit_code == code, done.output
    assert len(done.stderr.splitlines()) == 1


def test_who_may_create_a_topic_and_look_at_it_need_not_list_others(prepared):
    node = prepared.node
    as_root(node, f"user create maker --password-file {node.folder / 'password'}")
    made = "--resource Topic:made* --action Create --action Get"
    as_root(node, f"acl create maker {made}")
    as_root(node, "acl create maker --resource Cluster:* --action Get")

    def create(name: str, code: int) -> str:
        done = ropeway(node, "maker", "keys", f"topic create {name}")
        assert done.exit_code == code, done.output
        return done.output

    assert create("made-by-maker", 0) == "topic made-by-maker created\n"
    assert "made-by-maker exists already" in create("made-by-maker", 1)
    refused = create("others", 6)
    assert "not allowed; creating topic others takes the rights to Create" in refused
    as_root(node, "acl create maker --resource Topic:seen* --action Get")
    assert "maker may not Create Topic:seen" in create("seen", 6)


def test_every_command_that_is_a_client_is_walked():
    clients = {
        " ".join(path)
        for path, command in ALL.items()
        if not isinstance(command, click.Group)
        and any(one.name == "name_server" for one in command.params)
    }
    assert clients - {"context add", "mcp"} == WALK.keys() | SPARK


EACH = pytest.mark.parametrize("command", WALK)
EVERY = pytest.mark.parametrize(
    "way", [WAYS[0], *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS[1:])]
)


@EVERY
@EACH
def test_a_superuser_signs_in(prepared, command, way):
    if (command, way) == ("metrics", "certificate"):
        pytest.skip("the page knows nobody by a certificate")
    done = prepared.run(ROOT, way, command)
    assert done.exit_code == (1 if command in REFUSED else 0), done.output
    assert REFUSED.get(command, "") in done.output
    assert "not allowed" not in done.output


@EVERY
@EACH
def test_a_user_without_rights_is_told_so_in_one_line(prepared, command, way):
    done = prepared.run(NOBODY, way, command)
    assert done.exit_code == (4 if command == "doctor" else 6), done.output
    assert isinstance(done.exception, SystemExit)
    assert "not allowed" in done.output
    assert len(done.stderr.splitlines()) == 1
