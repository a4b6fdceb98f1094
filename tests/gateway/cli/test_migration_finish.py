"""`ropeway migrate finish`: late messages come here, and what is left is named."""

from __future__ import annotations

import json

from ropeway.client.admin_finish import Left
from ropeway.gateway.cli.migration_finish import words
from tests.gateway.cli.printed import valid
from tests.gateway.cli.test_cut_over import standing
from tests.gateway.cli.test_mirrors import known, run, target
from tests.ropeway.client.test_admin_cut_over import led

__all__ = ["led", "target"]


def cut_over(topic: str, here: tuple[str, ...]) -> None:
    words = ("--source", "old", *here)
    run("migrate", "mirror", topic, "--exit-at-end", *words)
    run("migrate", "cut-over", topic, "--settle", "0", *words)


def test_a_topic_is_finished_when_nothing_of_it_is_left_at_the_source(
    ropeway_gateway, led
):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (led, ropeway_gateway))
    topic = "finished"
    run("topic", "create", topic, "--queues", "1", *there)
    run("produce", topic, "early", *there)
    cut_over(topic, here)
    run("topic", "update", topic, "--perm", "6", *there)
    run("produce", topic, "late", *there)
    call = ("migrate", "finish", topic, "--source", "old", *here)
    asked = f"end the migration of {topic}, and send 1 late messages here"
    assert run(*call, "--dry-run").stdout == f"would {asked}\n"
    assert f"E{asked[1:]}? Standard input is no terminal" in run(*call, code=1).stderr
    assert standing(topic, here) == ("moved", None, "ropeway migrate finish")
    done = run(*call, "--yes", "--json")
    valid(call, done.stdout)
    nothing = dict.fromkeys(("late", "delayed", "timed", "half", "retry", "unread"), 0)
    (row,) = json.loads(done.stdout)
    assert row == {"topic": topic, "finished": True, "brought": 1, **nothing}
    assert standing(topic, here) == ("finished", None, "")
    read = run("consume", topic, "--exit-at-end", *here)
    assert read.stdout == "early\nlate\n"
    again = run(*call, "--yes", code=1)
    (line,) = again.stderr.splitlines()
    assert f"topic {topic} was not cut over here, or is finished" in line


def test_what_is_left_is_named_and_given_up_only_by_an_option(ropeway_gateway, led):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (led, ropeway_gateway))
    topic = "unfinished"
    run("topic", "create", topic, "--queues", "1", *there)
    run("produce", topic, "in two hours", "--delay-level", "18", *there)
    cut_over(topic, here)
    call = ("migrate", "finish", topic, "--source", "old", "--wait", "0", *here)
    for more in (("--dry-run",), ("--yes",)):
        done = run(*call, *more, "--json", code=4)
        valid(call, done.stdout)
        (row,) = json.loads(done.stdout)
        assert (row["finished"], row["delayed"]) == (False, 1)
        (line,) = done.stderr.splitlines()
        assert f"{topic}: 1 delayed; have them delivered" in line
    done = run(*call, "--leave", "--dry-run")
    assert done.stdout.endswith(f"and leave at the source {topic}: 1 delayed\n")
    # One whose broker is away is not known there, either.
    run("topic", "delete", topic, "--yes", *there)
    (line,) = run(*call, "--yes", code=4).stderr.splitlines()
    assert f"{topic}: what it has, which no broker there knows now; have" in line
    run(*call, "--leave", "--yes")
    run("topic", "create", topic, *there)
    assert standing(topic, here) == ("finished", None, "")


def test_what_has_not_moved_or_is_not_there_is_refused_in_one_line(
    ropeway_gateway, target
):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    for topic, said in (("absent", "is not at the target"), ("stayed", "has not mo")):
        if topic == "stayed":
            run("topic", "create", topic, *there)
            options = ("--source", "old", "--exit-at-end")
            run("migrate", "mirror", topic, *options, *here)
        words = ("migrate", "finish", topic, "--source", "old", "--yes", *here)
        (line,) = run(*words, code=1).stderr.splitlines()
        assert f"topic {topic} {said}" in line
    words = ("migrate", "finish", "stayed", "--source", "nowhere", "--yes", *here)
    assert "nowhere" in run(*words, code=2).stderr


def test_what_is_left_is_said_by_kind():
    assert words(Left(late=1)) == ""
    assert words(Left(timed=2, half=1_000, retry=3, unread=4)) == (
        "2 timed, 1,000 half, at most, 3 to be tried again, "
        "4 unread by groups that are not here"
    )
