"""`ropeway message dlq`."""

import asyncio
import json
import time

import pytest

from tests.ropeway.client.test_admin_dlq import killed


@pytest.fixture
def group(ropeway_gateway, ropeway_topic) -> str:
    """A group with two dead letters."""
    name = f"g-{ropeway_topic}"
    asyncio.run(killed(ropeway_gateway.name_server, ropeway_topic, name, [b"1", b"2"]))
    return name


def test_dead_letters_are_listed_and_replayed_once(run, group, ropeway_topic):
    rows = json.loads(run("message", "dlq", "list", group, "--json").stdout)
    assert {row["topic"] for row in rows} == {ropeway_topic}
    assert [row["replayed"] for row in rows] == [False, False]
    assert len(json.loads(run("group", "show", group, "--json").stdout)["queues"])
    kept = run("message", "dlq", "replay", group, stdin=b"n\n", code=1)
    assert f"Replay 2 messages of group {group} to the group?" in kept.stderr
    one = run("message", "dlq", "replay", group, "--count", "1", "--yes", "--json")
    (replayed,) = json.loads(one.stdout)
    assert replayed["msg_id"] == rows[0]["msg_id"]
    assert replayed["new_msg_id"] != replayed["msg_id"]
    left = run("message", "dlq", "replay", group, "--yes")
    assert left.stdout == f"1 messages of group {group} replayed\n"
    assert run("message", "dlq", "list", group).stdout == ""
    shown = json.loads(run("message", "dlq", "list", group, "--all", "--json").stdout)
    assert [row["replayed"] for row in shown] == [True, True]


def test_a_rate_spreads_a_replay_over_time(run, group):
    begun_s = time.monotonic()
    done = run("message", "dlq", "replay", group, "--rate", "2", "--yes")
    assert done.stdout == f"2 messages of group {group} replayed\n"
    # The second is due half a second after the first.
    assert time.monotonic() - begun_s >= 0.5
    assert (
        "0.0 is not"
        in run(*("message", "dlq", "replay", group, "--rate", "0"), code=2).stderr
    )
