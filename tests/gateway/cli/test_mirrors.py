"""`ropeway migrate mirror`: a topic is copied, followed, and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.gateway.cli.printed import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.testing import Gateway

PATIENCE_S = 120


@pytest.fixture
def target() -> Iterator[Gateway]:
    with running_gateway() as gateway:
        yield gateway


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def read(where: Gateway, topic: str) -> list[dict[str, object]]:
    """The messages of a topic, without what their broker is called."""
    lines = run(
        *("consume", topic, "--exit-at-end", "--json", "-n", where.name_server)
    ).stdout.splitlines()
    found = []
    for line in lines:
        one = json.loads(line)
        found.append({k: v for k, v in one.items() if k != "offset_msg_id"})
    return sorted(found, key=lambda one: (one["queue_id"], one["offset"]))


def known(source: Gateway) -> None:
    context_file.save(
        Contexts(contexts={"old": Context(name_server=source.name_server)})
    )


def test_topics_and_groups_are_copied_and_gone_on_with(ropeway_gateway, target):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    topic, group = "mirrored", "mirrored-readers"
    run("topic", "create", topic, "--queues", "2", *there)
    for number in range(5):
        run("produce", topic, str(number), "--tag", "t", "--key", f"k{number}", *there)
    run("consume", topic, "--group", group, "--count", "3", *there)
    run("group", "create", group, *here)
    words = ("migrate", "mirror", topic, "--source", "old", "--exit-at-end")
    done = run(*words, "--group", group, *here, "--json")
    valid((*words, "--group", group, *here), done.stdout)
    assert sum(one["messages"] for one in json.loads(done.stdout)) == 5
    assert read(target, topic) == read(ropeway_gateway, topic)
    offsets = [
        json.loads(run("offset", "show", group, topic, *where, "--json").stdout)
        for where in (here, there)
    ]
    of_topic = [
        sorted((one["queue_id"], one["committed"]) for one in some) for some in offsets
    ]
    assert of_topic[0] == of_topic[1]
    assert "no queue to write to" in run("produce", topic, "x", *here, code=1).output
    run("produce", topic, "more", *there)
    assert (
        sum(one["messages"] for one in json.loads(run(*words, *here, "--json").stdout))
        == 1
    )
    assert read(target, topic) == read(ropeway_gateway, topic)


def test_what_comes_is_followed_over_restarts_until_it_is_interrupted(
    ropeway_gateway, target
):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    topic = "followed"
    run("topic", "create", topic, "--queues", "1", *there)
    run("produce", topic, "one", *there)
    # Who runs tests in the background of a shell has them ignore it.
    command = ["env", "--default-signal=INT"]
    command += [sys.executable, "-m", "ropeway.gateway.cli.main"]
    with subprocess.Popen(
        [*command, "migrate", "mirror", topic, "--source", "old", *here],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            until_read(target, topic, 1)
            target.restart()
            run("produce", topic, "two", *there)
            until_read(target, topic, 2)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert b"Traceback" not in errors
    assert read(target, topic) == read(ropeway_gateway, topic)


def until_read(where: Gateway, topic: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        words = ("topic", "stats", topic, "-n", where.name_server, "--json")
        done = CliRunner().invoke(main, words)
        if done.exit_code == 0 and json.loads(done.stdout)["messages"] >= count:
            return
        assert time.monotonic() < deadline, done.output
        time.sleep(0.1)


def test_what_cannot_be_mirrored_is_told_in_one_line(ropeway_gateway, target):
    known(ropeway_gateway)
    there = ("-n", ropeway_gateway.name_server)
    run("topic", "create", "tabled", "--attribute", "cleanup.policy=COMPACTION", *there)
    words = ("migrate", "mirror", "--source", "old", "-n", target.name_server)
    for topic, said in (("tabled", "is compacted"), ("nosuch", "nosuch")):
        done = run(*words, topic, code=1)
        (line,) = done.stderr.splitlines()
        assert said in line
    done = run(*words, code=2)
    assert "TOPIC" in done.stderr
