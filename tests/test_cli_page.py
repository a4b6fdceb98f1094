"""docs/cli.md: what commands print there is what they print on a running node.

Values differ, so lines are compared by their shape: the same words in the same order,
where a word with a digit is any other one. Tables have the same columns.
"""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.acl.vault import new_key
from ropeway.gateway.cli.main import main
from ropeway.gateway.wire.trace import TRACE_TOPIC
from ropeway.testing import running_gateway
from tests.pages import ROOT
from tests.test_page_blocks import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from click.testing import Result

PAGE = "docs/cli.md"
ELSEWHERE = {
    "serve": "runs until it is stopped; all tests start nodes by it",
    "demo": "tests/gateway/cli/test_demo.py",
    "topic list -n": "tests/gateway/cli/test_secured.py",
    "consume orders --count": "waits for more; tests/gateway/cli/test_consume.py",
    "consume orders --group": "goes on until Ctrl-C; likewise",
    "bench consume": "waits for a minute; tests/gateway/cli/test_bench.py",
    "message tail": "goes on until Ctrl-C; tests/gateway/cli/test_tail.py",
    "client": "takes a client; tests/gateway/cli/test_client.py",
    "group members": "likewise; tests/gateway/cli/test_group.py",
    "message dlq": "tests/test_how_to.py",
    "log verify": "likewise",
    "transaction list": "tests/gateway/cli/test_transaction.py",
    "timer cancel": "tests/gateway/cli/test_timer.py",
    "metrics": "tests/gateway/cli/test_metrics.py",
    "doctor --config": "tests/gateway/cli/test_checks.py",
    "broker drain": "takes several brokers on Pulsar; tests/system/test_drain.py",
    "broker undrain": "likewise",
    "broker remove": "likewise",
    "route create": "likewise; tests/gateway/cli/test_route.py",
    "route delete": "likewise",
    "route rebalance": "likewise; tests/system/test_rebalance.py",
    "route move": "likewise; tests/system/test_moving.py",
    "route drain": "likewise",
    "streams run": "takes Spark; tests/gateway/cli/test_streams.py",
    "streams top": "likewise; tests/gateway/cli/test_streams_top.py",
    "pipeline": "likewise; tests/gateway/cli/test_pipeline.py",
    "migrate mirror": "takes another cluster; tests/gateway/cli/test_mirrors.py",
    "migrate cut-over": "takes another cluster; tests/gateway/cli/test_cut_over.py",
    "migrate finish": "likewise; tests/gateway/cli/test_migration_finish.py",
    "migrate rollback": "likewise; tests/gateway/cli/test_rollback.py",
    "migrate status": "takes another cluster; tests/gateway/cli/test_cut_over.py",
    "migrate verify": "takes another cluster; tests/gateway/cli/test_mirror_checks.py",
    "migrate plan": "takes another cluster; tests/gateway/cli/test_migrate.py",
    "mcp": "tests/gateway/cli/test_mcp.py",
    "completion": "tests/gateway/cli/test_completion.py",
}
"""What is not run here, by how it begins, and why, or where it is."""

BASE = (
    "topic create orders --queues 2",
    "group create kitchen",
    "user create alice --password-file alice.password",
    "acl create alice --resource Topic:orders --action Pub --action Sub",
    "produce orders 'one coffee' --tag paid --key order-7 --queue 0",
    "consume orders --group kitchen --from first --count 1 --timeout 60",
    "produce orders 'two teas' --tag free --queue 1",
)
"""What there is before each command."""
GONE = (
    *("topic delete orders --yes", "group delete kitchen --yes"),
    *("user delete alice --yes", "topic delete prices --yes"),
)
_PRICES = (
    "topic create prices --attribute cleanup.policy=COMPACTION",
    "produce prices 3 --key apple",
)
BEFORE: dict[str, Sequence[str]] = {
    "topic create": GONE[:1],
    "group create": GONE[1:2],
    "user create": GONE[2:3],
    "apply": GONE[:1],
    "diff": GONE[:1],
    "topic compaction": _PRICES,
    "message latest": _PRICES,
    "explain": (
        "offset reset kitchen orders --to earliest --yes",
        "produce orders --queue 0 two",
        "produce orders --queue 0 --key order-7 three",
    ),
}
"""What is done before commands that begin so."""

FILES = {
    "admin.password": "admin-secret",
    "alice.password": "alice-secret",
    "secret.txt": "ops-secret",
    "orders.txt": "one\ntwo\n",
    "order.bin": "one",
    "cluster.yaml": "topics: {orders: {queues: 16}}\ngroups: {kitchen: {retries: 3}}\n",
    "kitchen.tsv": "topic\tbroker\tqueue_id\toffset\norders\tbroker-0\t0\t0\n",
    "key": new_key(),
    "node.toml": """
[acl]
hooks = ["users"]
key_file = "key"
[acl.options.users]
superuser = "admin"
superuser_password_file = "admin.password"
[limits]
send_wait_ms = 60_000
[log]
segment_bytes = 8_388_608
""",
}
ENVIRONMENT = {"ROPEWAY_ACCESS_KEY": "admin", "ROPEWAY_SECRET_KEY": "admin-secret"}
_OFFSET_MSG_ID = re.compile(r"\b7F000[0-9A-F]{27}\b")
_MSG_ID = re.compile(r"\b0100007F[0-9A-F]{24}\b")
_HEADER = re.compile(r"[a-z_0-9]+(?:\s+[a-z_0-9]+)+")


class Machine:
    """Where commands are run; contexts are kept apart from what the tests use."""

    def __init__(self, folder: Path, name_server: str) -> None:
        self._folder = folder
        self._cluster = {
            **ENVIRONMENT,
            "ROPEWAY_NAME_SERVER": name_server,
            "XDG_CONFIG_HOME": str(folder / "none"),
        }
        self._contexts = {
            **dict.fromkeys(self._cluster),
            "XDG_CONFIG_HOME": str(folder / "xdg"),
        }

    def run(self, line: str) -> Result:
        """Run a command line, with the files that the shell would give it."""
        words = shlex.split(line.partition(" | ")[0])
        redirected = dict.fromkeys("<>", "")
        for sign in redirected:
            if sign in words:
                at = words.index(sign)
                redirected[sign] = words[at + 1]
                del words[at : at + 2]
        given = redirected["<"] and (self._folder / redirected["<"]).read_text()
        env = self._contexts if words[0] == "context" else self._cluster
        done = CliRunner().invoke(main, words, input=given, env=env)
        if redirected[">"]:
            (self._folder / redirected[">"]).write_text(done.stdout)
        return done

    def all_done(self, lines: Iterable[str]) -> None:
        for line in lines:
            done = self.run(line)
            assert done.exit_code == 0, (line, done.output)

    def prepare(self, line: str) -> str:
        """Have what a command needs; the same with ids that there are."""
        for gone in GONE:
            self.run(gone)
        self.all_done(BASE)
        for start, lines in BEFORE.items():
            if line.startswith(start):
                self.all_done(lines)
        if not (_OFFSET_MSG_ID.search(line) or _MSG_ID.search(line)):
            return line
        found = self.run("message query orders order-7 --json").stdout.splitlines()
        newest = max(map(json.loads, found), key=lambda one: one["offset"])
        fields = ("Pub", "SubBefore", "SubAfter")
        if line.startswith("message trace"):
            self.all_done(traced(newest["msg_id"], *fields))
        line = _OFFSET_MSG_ID.sub(newest["offset_msg_id"], line)
        return _MSG_ID.sub(newest["msg_id"], line)


def traced(msg_id: str, *kinds: str) -> list[str]:
    """Command lines that write a message's trace as clients do."""
    steps = {
        "Pub": f"5 region shop orders {msg_id} tag order-7 host 9 3 0 id true",
        "SubBefore": f"10 region kitchen R {msg_id} 0 order-7",
        "SubAfter": f"R {msg_id} 8 true order-7 0 20 kitchen",
    }
    record = "".join(
        "\x01".join([kind, *steps[kind].split()]) + "\x02" for kind in kinds
    )
    return [f"produce {TRACE_TOPIC} {shlex.quote(record)} --key {msg_id}"]


def shape(line: str) -> str:
    """The words of a line; any that has a digit, or is of a drawing, is like any."""
    return " ".join(
        "#" if re.search(r"\d|^#+$", word) else word for word in line.split()
    )


def is_header(before: str, line: str) -> bool:
    """Whether a line names a table's columns: a blank line is before it, or none."""
    return not before.strip() and _HEADER.fullmatch(line.strip()) is not None


def lies(said: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The lines of a page that a command did not print so."""
    shapes = {shape(line) for line in printed}
    found, in_table = [], False
    said = [line for line in said if not line.startswith("$ ")]
    for before, line in pairwise(["", *said]):
        if is_header(before, line) and shape(line) in shapes:
            in_table = True
        elif not line.strip():
            in_table = False
        elif shape(line) not in shapes and not (in_table and "  " in line.strip()):
            found.append(line)
    return found


@pytest.mark.slow
def test_commands_print_what_stands_on_their_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    wrong, looked = {}, 0
    options = ["--config", "node.toml"]
    with running_gateway(tmp_path / "data", options) as gateway:
        machine = Machine(tmp_path, gateway.name_server)
        for _, line, said in shown(PAGE):
            if line.startswith(tuple(ELSEWHERE)):
                continue
            done = machine.run(machine.prepare(line))
            looked += bool(said)
            expected = 1 if line.startswith("diff") else 0
            if done.exit_code != expected:
                wrong[line] = [done.output]
            elif found := lies(said, done.stdout.splitlines()):
                wrong[line] = [*found, "printed:", done.stdout]
    assert not wrong, "\n".join(f"{line}: {'; '.join(wrong[line])}" for line in wrong)
    assert looked > 25


def test_what_is_not_run_here_is_on_the_page():
    lines = [line for _, line, _ in shown(PAGE)]
    for start in ELSEWHERE:
        assert any(line.startswith(start) for line in lines), start


def test_lies_are_found():
    printed = ["topic   queue_id  lag", "orders  0         12", "", "3 messages in all"]
    assert lies(["topic   queue_id  lag", "others  7         1"], printed) == []
    assert lies(["5 messages in all"], printed) == []
    assert lies(["topic   lag  queue_id", "orders  1    0"], printed) != []
    assert lies(["5 messages and more"], printed) == ["5 messages and more"]
