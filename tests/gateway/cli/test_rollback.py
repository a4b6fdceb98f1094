"""`ropeway migrate rollback`: a topic goes back, and what waits here is said."""

from __future__ import annotations

import json

from tests.gateway.cli.printed import valid
from tests.gateway.cli.test_cut_over import standing
from tests.gateway.cli.test_migration_finish import cut_over
from tests.gateway.cli.test_mirrors import known, run, target
from tests.ropeway.client.test_admin_cut_over import led

__all__ = ["led", "target"]


def test_a_topic_is_used_at_the_source_again(ropeway_gateway, led):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (led, ropeway_gateway))
    topic, group = "rolled-back", "rolled-back-readers"
    run("topic", "create", topic, "--queues", "1", *there)
    for where in (here, there):
        run("group", "create", group, *where)
    run("produce", topic, "before", *there)
    cut_over(topic, here)
    for body in ("one", "two"):
        run("produce", topic, body, *here)
    run("produce", topic, "in two hours", "--delay-level", "18", *here)
    run("consume", topic, "--group", group, "--count", "2", *here)
    call = ("migrate", "rollback", topic, "--source", "old", "--settle", "0")
    call += ("--group", group, *here)
    done = run(*call, "--json")
    valid(call, done.stdout)
    found = json.loads(done.stdout)
    (row,) = found["topics"]
    assert (row["topic"], row["sent"], row["waits"]) == (topic, 2, 1)
    assert 0 < row["paused_ms"] <= row["took_ms"]
    assert found["translated"] == [
        {"group": group, "topic": topic, "queue_id": 0, "at_target": 2, "at_source": 2}
    ]
    waits = "1 messages wait here, for a time or the end of a transaction; run the "
    waits += "same command when they are due"
    assert done.stderr.splitlines() == [
        f"send to the source what is stored of {topic} here",
        f"send on to the source what producers of {topic} send",
        "wait until groups have read what is left here",
        f"lead clients of {topic} to the source",
        waits,
    ]
    assert standing(topic, here) == ("returned", None, "")
    read = ("consume", topic, "--group", group, "--count", "1")
    assert run(*read, *here).stdout == "two\n"
    run("produce", topic, "after", *here)
    stored = run("consume", topic, "--exit-at-end", *there).stdout.splitlines()
    assert stored == ["before", "one", "two", "after"]
    # It has gone back, so there is nothing left to do.
    again = json.loads(run(*call, "--json").stdout)
    assert (again["topics"][0]["sent"], again["translated"]) == (0, [])
    (line,) = run(
        *("migrate", "finish", topic, "--source", "old", "--yes", *here), code=1
    ).stderr.splitlines()
    assert f"topic {topic} has not moved" in line


def test_what_did_not_move_is_refused_in_one_line(ropeway_gateway, target):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    words = ("--source", "old", *here)
    for topic, said in (("absent", "is not at the target"), ("stays", "has not mo")):
        if topic == "stays":
            run("topic", "create", topic, *there)
            run("migrate", "mirror", topic, "--exit-at-end", *words)
        done = run("migrate", "rollback", topic, *words, code=1)
        (line,) = done.stderr.splitlines()
        assert f"topic {topic} {said}" in line
    done = run("migrate", "rollback", "stays", "--group", "nobody", *words, code=1)
    (line,) = done.stderr.splitlines()
    assert "nobody" in line


def test_a_table_shows_where_groups_go_on(ropeway_gateway, led):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (led, ropeway_gateway))
    topic, group = "shown-back", "shown-back-readers"
    run("topic", "create", topic, "--queues", "1", *there)
    for where in (here, there):
        run("group", "create", group, *where)
    cut_over(topic, here)
    run("produce", topic, "one", *here)
    run("consume", topic, "--group", group, "--count", "1", *here)
    call = ("migrate", "rollback", topic, "--source", "old", "--settle", "0")
    shown = run(*call, "--group", group, *here).stdout.splitlines()
    assert [line.split()[0] for line in shown if line] == [
        *("topic", topic, "group", group)
    ]
