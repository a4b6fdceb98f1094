"""`ropeway migrate cut-over`: a mirror takes over, and says what it waits for."""

from __future__ import annotations

import asyncio
import json

import pytest

from ropeway.client import Admin, admin_topics
from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.testing import running_gateway
from tests.gateway.cli.printed import valid
from tests.gateway.cli.test_mirrors import known, run, target
from tests.pages import DOCS, blocks
from tests.ropeway.client.scenario import PATIENT
from tests.ropeway.client.test_admin_cut_over import led, led_to
from tests.system.ropeway import Ropeway

__all__ = ["led", "target"]


@pytest.fixture(scope="module")
def two_brokers(tmp_path_factory):
    # Each listens on the next port, which has to be free as well.
    server = Ropeway(tmp_path_factory.mktemp("two"), options=("--workers", "2"))
    server.start()
    yield server
    server.stop()


def test_a_topic_is_closed_there_and_open_here(ropeway_gateway, led):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (led, ropeway_gateway))
    topic, group = "taken-over", "taken-over-readers"
    run("topic", "create", topic, "--queues", "1", *there)
    for number in range(3):
        run("produce", topic, str(number), *there)
    run("consume", topic, "--group", group, "--count", "2", *there)
    run("group", "create", group, *here)
    words = ("migrate", "cut-over", topic, "--source", "old", "--settle", "0")
    words += ("--group", group, *here)
    assert standing(topic, here) == ("at_source", None, "ropeway migrate mirror")
    done = run(*words, code=1)
    (line,) = done.stderr.splitlines()
    assert f"topic {topic} is not at the target; mirror it first" in line
    run("produce", topic, "still open", *there)
    run("migrate", "mirror", topic, "--source", "old", "--exit-at-end", *here)
    run("produce", topic, "one more", *there)
    assert standing(topic, here) == ("mirrored", 1, "ropeway migrate mirror")
    run("migrate", "mirror", topic, "--source", "old", "--exit-at-end", *here)
    assert standing(topic, here) == ("mirrored", 0, "ropeway migrate cut-over")
    done = run(*words, "--json")
    valid(words, done.stdout)
    (row,) = json.loads(done.stdout)
    assert (row["topic"], row["took_ms"] >= 0) == (topic, True)
    assert 0 < row["paused_ms"] <= row["took_ms"]
    assert done.stderr.splitlines() == [
        f"lead producers of {topic} here, and send on to the source",
        "wait 0 s until all producers have come",
        f"store messages of {topic} here",
        "wait until groups have read what is left at the source",
        f"open {topic}",
    ]
    assert standing(topic, here) == ("moved", None, "ropeway migrate finish")
    run("produce", topic, "x", *there, code=1)
    run("produce", topic, "x", *here)
    (offset,) = json.loads(run("offset", "show", group, topic, *here, "--json").stdout)
    assert offset["committed"] == 2
    # It has moved, so there is nothing left to do.
    again = run(*words, "--json")
    assert json.loads(again.stdout) == [
        {"topic": topic, "took_ms": None, "paused_ms": None}
    ]
    assert not again.stderr


def standing(
    topic: str, here: tuple[str, ...], source: str = "old"
) -> tuple[str, int | None, str]:
    words = ("migrate", "status", "--source", source, "--look", "0.1", *here)
    done = run(*words, "--json")
    valid(words, done.stdout)
    # Those of the system are not among them.
    found = {row["topic"]: row for row in json.loads(done.stdout)}
    assert not any("%" in name or name == "TBW102" for name in found)
    row = found[topic]
    assert (row["behind_s"] or 0) >= 0
    assert (row["left_s"] == 0) == (row["to_copy"] == 0)
    return row["stage"], row["to_copy"], row["next"]


@pytest.mark.slow
def test_the_commands_of_the_page_move_a_topic_with_its_group():
    with running_gateway() as rocketmq, led_to(rocketmq.name_server) as target:
        context = Context(name_server=rocketmq.name_server)
        context_file.save(Contexts(contexts={"rocketmq": context}))
        here, there = (("-n", one.name_server) for one in (target, rocketmq))
        run("topic", "create", "orders", "--queues", "1", *there)
        for body in ("one", "two"):
            run("produce", "orders", body, *there)
        run("consume", "orders", "--group", "kitchen", "--count", "1", *there)
        run("group", "create", "kitchen", *here)
        lines = [
            line.split()[1:]
            for block in blocks(DOCS / "how-to" / "migrate.md", "")
            for line in block.text.splitlines()
            if "--source rocketmq orders" in line
        ]
        steps = ["mirror", "verify", "cut-over", "finish", "rollback"]
        assert [words[1] for words in lines] == steps
        quick = ("--settle", "0")
        more = {"cut-over": quick, "rollback": quick, "finish": ("--yes",)}
        # What is finished does not go back; another topic does.
        run("topic", "create", "payments", "--queues", "1", *there)
        back = [lines[number] for number in (0, 2, 4)]
        other = [[one.replace("orders", "payments") for one in words] for words in back]
        for words in (*lines[:-1], *other):
            run(*words, *more.get(words[1], ()), *here)
        for topic, stage in (("orders", "finished"), ("payments", "returned")):
            assert standing(topic, here, "rocketmq") == (stage, None, "")
        shown = run("consume", "orders", "--group", "kitchen", "--count", "1", *here)
    assert shown.stdout == "two\n"


@pytest.mark.slow
def test_the_commands_of_the_page_keep_a_standby_and_open_it():
    with running_gateway() as east, running_gateway() as west:
        context_file.save(
            Contexts(contexts={"east": Context(name_server=east.name_server)})
        )
        here, there = (("-n", one.name_server) for one in (west, east))
        for topic in ("orders", "payments"):
            run("topic", "create", topic, "--queues", "1", *there)
            for body in ("one", "two"):
                run("produce", topic, body, *there)
        run("consume", "orders", "--group", "kitchen", "--count", "1", *there)
        group, mirror, status, update = (
            line.split()[1:]
            for block in blocks(DOCS / "how-to" / "migrate.md", "")
            for line in block.text.splitlines()
            if any(
                words in line
                for words in ("group create", "--source east", "topic update")
            )
        )
        run(*group, *here)
        run(*mirror, "--exit-at-end", *here)
        run(*status, *here)
        run("produce", "orders", "three", *here, code=1)
        run(*update, *here)
        run("produce", "orders", "three", *here)
        shown = run("consume", "orders", "--group", "kitchen", "--count", "2", *here)
    assert shown.stdout == "two\nthree\n"


@pytest.mark.slow
def test_a_topic_on_several_brokers_of_the_target_is_refused_in_one_line(
    two_brokers, target
):
    there, here = (("-n", one.name_server) for one in (two_brokers, target))
    known(target)
    run("topic", "create", "both", *here)
    run("topic", "create", "both", *there)
    for command in ("mirror", "verify"):
        words = ("migrate", command, "both", "--source", "old", *there)
        done = run(*words, code=1)
        (line,) = done.stderr.splitlines()
        assert "both is on brokers broker-0, broker-1 of the target; allowed" in line


@pytest.mark.slow
def test_topics_on_one_of_two_brokers_or_on_both_move_and_go_back(two_brokers):
    known(two_brokers)
    topics = {"left": "broker-0", "right": "broker-1"}

    async def create() -> None:
        async with Admin(two_brokers.name_server, config=PATIENT) as admin:
            for topic, broker in topics.items():
                await admin_topics.create_on(admin, topic, broker, 2)
            await admin.create_topic("wide", 2)

    asyncio.run(create())
    with led_to(two_brokers.name_server) as target:
        there, here = (("-n", one.name_server) for one in (two_brokers, target))
        both = (*topics, "wide")
        for topic in both:
            run("produce", topic, "before", *there)
        words = (*both, "--source", "old", *here)
        run("migrate", "mirror", *words, "--exit-at-end")
        run("migrate", "cut-over", *words, "--settle", "0")
        for topic in both:
            run("produce", topic, "after", *here)
        run("migrate", "rollback", *words, "--settle", "0")
        for topic in both:
            run("produce", topic, "end", *here)
            read = run("consume", topic, "--exit-at-end", *there).stdout
            assert sorted(read.split()) == ["after", "before", "end"]
