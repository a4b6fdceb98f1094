"""Destructive commands: each has --dry-run and --yes, and asks without them."""

import json
import os
import pty
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main as ropeway
from tests.gateway.cli.secured import ROOT
from tests.gateway.cli.test_main import ALL
from tests.gateway.cli.test_secured import REFUSED, WALK, Prepared, prepared
from tests.waiting import WAIT_S, is_asleep, until

__all__ = ["prepared"]

VERBS = {
    *("apply", "cancel", "delete", "drain", "import", "move", "rebalance", "remove"),
    *("replay", "resend", "reset", "rewind", "trim"),
}
"""A command with one of these names destroys something."""

DESTRUCTIVE = {
    " ".join(path)
    for path, command in ALL.items()
    if path[-1] in VERBS and not isinstance(command, click.Group)
} | {"broker update", "migrate finish"}
"""The first of these changes what a broker does under its clients; after the second
there is no way back."""

CLIENTS = sorted(DESTRUCTIVE - {"context delete", "migrate finish"})
"""Of the last one `test_migration_finish.py` sees it: it takes another cluster."""

STATE = [
    "topic list --all",
    "group list --all",
    "group list --lag",
    "user list",
    "acl list",
    "quota list",
    "timer list",
    "route show",
    "topic stats orders",
    "offset show kitchen",
    "group show kitchen",
]
"""What a node looks like."""

LINES = {
    "acl delete": "ruled-keys",
    "message dlq replay": "kitchen",
    "topic delete": "orders",
    "topic trim": "orders --to latest",
    "group delete": "kitchen",
    "user delete": "target-keys",
    "route move": "broker-0 --to nobody",
    "broker remove": "broker-9 --gone",
    "quota delete": "--topic prices",
}
"""Arguments of those that `WALK` calls with what is gone by then."""


NOTHING_TO_DO = {"message dlq replay": "0 messages of group kitchen replayed"}


def state(prepared: Prepared) -> dict[str, str]:
    found = {}
    for line in STATE:
        environment = prepared.node.environment(ROOT)
        shown = CliRunner().invoke(ropeway, f"{line} --json".split(), env=environment)
        assert shown.exit_code == 0, shown.output
        found[line] = shown.stdout
    stats = json.loads(found["topic stats orders"])
    found["topic stats orders"] = stats["queues"]
    return found


def call(prepared: Prepared, command: str, *more: str) -> Result:
    line = LINES.get(command) or WALK[command].format(
        way="keys",
        msg_id=prepared.msg_id,
        handle=prepared.handles["keys"],
        password=prepared.node.folder / "password",
        seek_file=prepared.node.folder / "kitchen.tsv",
        cluster_file=prepared.node.folder / "cluster.yaml",
    )
    words = [word for word in line.split() if word not in ("--yes", "--dry-run")]
    return CliRunner().invoke(
        ropeway,
        [*command.split(), *words, *more],
        env=prepared.node.environment(ROOT),
    )


def test_destructive_commands_have_both_options_and_no_others_have():
    both = {
        " ".join(path)
        for path, command in ALL.items()
        if {"yes", "dry_run"} <= {one.name for one in command.params}
    }
    either = {
        " ".join(path)
        for path, command in ALL.items()
        if {"yes", "dry_run"} & {one.name for one in command.params}
    }
    assert both == either == DESTRUCTIVE


@pytest.fixture(scope="module")
def before(prepared) -> dict[str, str]:
    """The node as it is before all tests, none of which changes it."""
    return state(prepared)


@pytest.mark.parametrize("command", CLIENTS)
def test_where_nobody_can_be_asked_nothing_is_done_and_a_dry_run_prints_what_would_be(
    prepared, before, command
):
    tried = call(prepared, command, "--dry-run")
    if REFUSED.get(command, "-") not in tried.stderr:
        assert tried.exit_code == 0, tried.output
        assert tried.stdout
    refused = call(prepared, command)
    if command in NOTHING_TO_DO:
        assert NOTHING_TO_DO[command] in refused.stdout
    else:
        assert refused.exit_code == 1, refused.output
        if REFUSED.get(command, "-") not in refused.stderr:
            assert "? Standard input is no terminal to ask at; --yes " in refused.stderr
    assert state(prepared) == before


def test_a_dry_run_is_not_also_answered_with_yes(prepared):
    refused = call(prepared, "topic delete", "--dry-run", "--yes")
    assert refused.exit_code == 2
    assert "give one of --yes and --dry-run" in refused.stderr


# Where tests run in the background of a shell, Ctrl-C is not for them, nor for theirs.
_COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ropeway.gateway.cli.entry import main
main()
"""


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), (None, 130), ("y\n", 0)])
def test_at_a_terminal_it_asks(ropeway_gateway, ropeway_topic, run, answer, code):
    run("topic", "create", ropeway_topic)
    line = ["topic", "delete", ropeway_topic, "-n", ropeway_gateway.address]
    parent, child = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *line],
            stdin=child,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            asked = b""
            while b"[y/N]: " not in asked:
                read = os.read(process.stderr.fileno(), 1024)
                assert read, "it has ended"
                asked += read
            assert f"Delete topic {ropeway_topic} ".encode() in asked
            if answer is not None:
                os.write(parent, answer.encode())
            else:
                # A signal right before it reads is seen after that only, as everywhere.
                until(lambda: is_asleep(process.pid))
                process.send_signal(signal.SIGINT)
            process.wait(WAIT_S)
        assert process.returncode == code
    finally:
        os.close(parent)
        os.close(child)
    names = run("topic", "list").stdout.split()
    assert (ropeway_topic in names) == (code != 0)
