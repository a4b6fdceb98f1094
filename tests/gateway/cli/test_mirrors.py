"""`ropeway migrate mirror`: a topic is copied, followed, and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.client import ConnectionFailedError, ResponseError
from ropeway.client.errors import (
    AdminError,
    BrokerNotFoundError,
    TopicNotFoundError,
)
from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.main import main
from ropeway.gateway.cli.mirrors import Outage, may_pass
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.testing import running_gateway
from tests.gateway.cli.printed import valid
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


class Mirroring:
    """A mirror in a process of its own, until it is interrupted."""

    def __init__(self, errors: Path, *words: str) -> None:
        self._errors = errors
        # Who runs tests in the background of a shell has them ignore it.
        command = ["env", "--default-signal=INT"]
        command += [sys.executable, "-m", "ropeway.gateway.cli.main"]
        with errors.open("w") as stderr:
            self.process = subprocess.Popen(
                [*command, "migrate", "mirror", "--source", "old", *words],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    @property
    def said(self) -> list[str]:
        """The lines of its standard error."""
        return self._errors.read_text().splitlines()

    def interrupt(self) -> None:
        """End it as an operator does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)


@contextmanager
def mirroring(folder: Path, *words: str) -> Iterator[Mirroring]:
    one = Mirroring(folder / "stderr", *words)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


@pytest.mark.slow
def test_what_comes_is_followed_over_restarts_until_it_is_interrupted(
    ropeway_gateway, target, tmp_path
):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    topic = "followed"
    run("topic", "create", topic, "--queues", "1", *there)
    run("produce", topic, "one", *there)
    with mirroring(tmp_path, topic, *here, "--rate", "100000") as mirror:
        until_read(target, topic, 1)
        target.restart()
        run("produce", topic, "two", *there)
        until_read(target, topic, 2)
        mirror.interrupt()
    assert "Traceback" not in "".join(mirror.said)
    assert read(target, topic) == read(ropeway_gateway, topic)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_by_kills(ropeway_gateway, target, tmp_path):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    topic, count = "killed", 1200
    run("topic", "create", topic, "--queues", "2", *there)
    run("bench", "produce", topic, "--count", str(count), "--size", "100", *there)
    for least, who in ((1, "mirror"), (200, "target"), (400, "mirror")):
        with mirroring(tmp_path, topic, "--rate", "200", *here) as mirror:
            until_read(target, topic, least)
            if who == "target":
                target.kill()
                target.start()
                until_read(target, topic, least + 1)
            # Leaving kills it, wherever it is.
            assert mirror.process.poll() is None
    run("migrate", "mirror", topic, "--source", "old", "--exit-at-end", *here)
    found = read(target, topic)
    assert len(found) == count
    assert found == read(ropeway_gateway, topic)


WAITS, GOES_ON = "waiting for servers: ", "servers are back, going on"


@pytest.mark.slow
def test_servers_that_are_away_are_waited_for_and_that_is_said_once(target, tmp_path):
    here, topic = ("-n", target.name_server), "waited"
    with running_gateway(topics=[f"{topic}:1"]) as source:
        known(source)
        there = ("-n", source.name_server)
        run("produce", topic, "one", *there)
        with mirroring(tmp_path, topic, *here) as mirror:

            def waits() -> bool:
                return mirror.said[-1:] != [] and mirror.said[-1].startswith(WAITS)

            until_read(target, topic, 1)
            source.stop()
            until(waits)
            source.start()
            run("produce", topic, "two", *there)
            until_read(target, topic, 2)
            target.kill()
            run("produce", topic, "three", *there)
            until(waits)
            target.start()
            until_read(target, topic, 3)
            until(lambda: mirror.said[-1] == GOES_ON)
            mirror.interrupt()
        assert read(target, topic) == read(source, topic)
    assert all(line.startswith(WAITS) for line in mirror.said[::2])
    assert set(mirror.said[1::2]) == {GOES_ON}


def test_queues_that_wait_say_so_together(capsys):
    outage, error = Outage(), ConnectionFailedError("mq-1:9876", "it is away")
    first, second = "first", "second"
    outage.ends(first)
    for one in (first, second, first):
        outage.begins(one, error)
    outage.ends(first)
    assert capsys.readouterr().err == "waiting for servers: mq-1:9876: it is away\n"
    outage.ends(second)
    outage.ends(first)
    assert capsys.readouterr().err == "servers are back, going on\n"
    outage.begins(first, error)
    assert "waiting" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionFailedError("mq-1:9876", "it is away"), True),
        (ResponseError(ResponseCode.SYSTEM_BUSY, "", "mq-1:10911"), True),
        (BrokerNotFoundError("there is no broker broker-a; there are "), True),
        (TopicNotFoundError("topic 'orders' does not exist"), True),
        (ResponseError(ResponseCode.TOPIC_NOT_EXIST, "", "mq-1:10911"), False),
        (ResponseError(ResponseCode.NO_PERMISSION, "", "mq-1:10911"), False),
        (AdminError("the target lacks what was from 5 on"), False),
    ],
)
def test_what_may_pass_is_waited_for_and_nothing_else(error, passes):
    assert may_pass(error) == passes


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
