"""`ropeway migrate verify`: what is equal is told, and what is not by an exit code."""

from __future__ import annotations

import json

from tests.gateway.cli.printed import valid
from tests.gateway.cli.test_mirrors import known, run, target

__all__ = ["target"]


def verified(*words: str, code: int = 0) -> tuple[dict, str]:
    words = ("migrate", "verify", "--source", "old", "--json", *words)
    done = run(*words, code=code)
    valid(words, done.stdout)
    return json.loads(done.stdout), done.stderr


def test_a_mirror_is_as_its_source_and_then_it_is_not(ropeway_gateway, target):
    known(ropeway_gateway)
    here, there = (("-n", one.name_server) for one in (target, ropeway_gateway))
    topic, group = "verified", "verified-readers"
    run("topic", "create", topic, "--queues", "2", *there)
    for number in range(5):
        run("produce", topic, str(number), "--queue", str(number % 2), *there)
    run("consume", topic, "--group", group, "--count", "5", *there)
    run("group", "create", group, *here)
    mirror = ("migrate", "mirror", topic, "--source", "old", "--exit-at-end", *here)
    run(*mirror, "--group", group)
    words = (topic, "--group", group, "--rate", "100000", "--wait", "0", *here)
    found, _ = verified(*words)
    assert [one["equal"] for one in found["queues"]] == [3, 2]
    assert [one["at_target"] for one in found["offsets"]] == [3, 2]
    shown = run("migrate", "verify", "--source", "old", *words).stdout.splitlines()
    assert shown[0].split()[:4] == ["topic", "queue_id", "equal", "missing"]
    assert shown[1].split() == [topic, "0", "3", "0", "0", "0"]
    assert shown[5].split() == [group, topic, "0", "3", "3"]
    # The source goes on, and the mirror does not.
    run("produce", topic, "more", "--queue", "1", *there)
    run("offset", "reset", group, topic, "--to", "earliest", "--yes", *here)
    found, said = verified(*words, code=4)
    assert [one["missing"] for one in found["queues"]] == [0, 1]
    assert found["queues"][0]["first_differing"] is None
    (line,) = said.splitlines()
    assert "1 messages missing, groups go on elsewhere in 2 queues" in line


def test_what_cannot_be_compared_is_told_in_one_line(ropeway_gateway, target):
    known(ropeway_gateway)
    here = ("-n", target.name_server)
    there = ("-n", ropeway_gateway.name_server)
    run("topic", "create", "unmirrored", *there)
    words = ("migrate", "verify", "--source", "old", *here)
    for line, said, code in (
        (("nosuch",), "nosuch", 1),
        (("unmirrored",), "topic unmirrored is not at the target", 1),
        (("unmirrored", "--rate", "0"), "--rate", 2),
        (("unmirrored", "--wait", "-1"), "--wait", 2),
    ):
        done = run(*words, *line, code=code)
        assert said in done.stderr.splitlines()[-1]
    run("topic", "create", "unmirrored", *here)
    done = run(*words, "unmirrored", "--group", "nobody", code=1)
    assert "nobody" in done.stderr
    assert "TOPIC" in run(*words, code=2).stderr
