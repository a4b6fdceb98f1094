"""`ropeway group`."""

import json

import pytest


@pytest.fixture
def group(run, ropeway_topic) -> str:
    """A group that has read two of five messages."""
    name = f"g-{ropeway_topic}"
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, stdin=b"1\n2\n3\n4\n5\n")
    run("consume", ropeway_topic, "--group", name, "--count", "2")
    return name


def test_groups_are_listed(run, group):
    assert group in run("group", "list").stdout.split()
    rows = json.loads(run("group", "list", "--json").stdout)
    assert {"group": group} in rows


def test_a_description_gives_the_lag_of_each_queue_and_who_consumes(
    run, group, ropeway_topic
):
    shown = [
        line.split() for line in run("group", "describe", group).stdout.splitlines()
    ]
    assert shown == [
        ["topic", "broker", "queue", "committed", "end", "lag"],
        [ropeway_topic, "broker-0", "0", "2", "5", "3"],
        ["lag:", "3"],
        ["consumers:", "none"],
    ]
    found = json.loads(run("group", "describe", group, "--json").stdout)
    assert (found["lag"], found["consumers"]) == (3, [])
    assert found["queues"][0]["committed"] == 2


def test_a_deleted_group_is_gone_with_its_offsets(run, group, ropeway_topic):
    assert "Delete group" in run("group", "delete", group, stdin=b"n\n", code=1).stdout
    deleted = run("group", "delete", group, "--yes")
    assert deleted.stdout == f"group {group} deleted\n"
    for command in ("describe", "delete"):
        args = ["--yes"] if command == "delete" else []
        result = run("group", command, group, *args, code=1)
        assert result.stderr == f"Error: there is no group {group}\n"
    again = run("consume", ropeway_topic, "--group", group, "--count", "1")
    assert again.stdout == "1\n"
