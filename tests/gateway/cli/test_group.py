"""`ropeway group`."""

import json

import pytest

from ropeway.gateway.node.names import SYSTEM_GROUP_PREFIX


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


def test_the_lag_of_all_groups_is_listed_the_largest_first(run, group, ropeway_topic):
    ahead = f"a-{ropeway_topic}"
    run("consume", ropeway_topic, "--group", ahead, "--count", "5")
    rows = json.loads(run("group", "list", "--lag", "--json").stdout)
    assert {"group": group, "lag": 3, "queues": 1} in rows
    assert {"group": ahead, "lag": 0, "queues": 1} in rows
    assert [one["lag"] for one in rows] == sorted(
        (one["lag"] for one in rows), reverse=True
    )


def test_the_size_of_groups_is_listed(run, group, ropeway_topic):
    rows = json.loads(run("group", "list", "--sizes", "--json").stdout)
    (row,) = (one for one in rows if one["group"] == group)
    assert (row["lag"], row["queues"], row["topics"], row["members"]) == (3, 1, 1, 0)
    assert row["out_last_hour"] >= 2
    assert row["done_until"]
    assert row["out_per_s"] >= 0


def test_groups_of_brokers_are_hidden_unless_asked_for(run):
    inner = f"{SYSTEM_GROUP_PREFIX}OWN"
    run("group", "create", inner)
    try:
        assert inner not in run("group", "list").stdout.split()
        assert inner in run("group", "list", "--all").stdout.split()
    finally:
        run("group", "delete", inner, "--yes")


def test_a_group_is_shown_with_the_lag_of_each_queue_and_who_consumes(
    run, group, ropeway_topic
):
    shown = [line.split() for line in run("group", "show", group).stdout.splitlines()]
    assert shown[:5] == [
        ["topic", "broker", "queue_id", "committed", "end", "lag"],
        [ropeway_topic, "broker-0", "0", "2", "5", "3"],
        ["lag:", "3"],
        ["dead", "letters:", "0"],
        ["consumers:", "none"],
    ]
    assert ["retries:", "16"] in shown
    found = json.loads(run("group", "show", group, "--json").stdout)
    assert (found["lag"], found["dead_letters"], found["consumers"]) == (3, 0, [])
    assert found["queues"][0]["committed"] == 2
    assert found["settings"]["retries"] == 16


def test_a_group_is_made_once_and_changed_in_part(run, ropeway_topic):
    name = f"new-{ropeway_topic}"
    made = run("group", "create", name, "--retries", "3", "--read-at", "slave")
    assert made.stdout == f"group {name} created\n"
    assert "exists already" in run("group", "create", name, code=1).stderr
    run("group", "update", name, "--no-consume", "--in-order")
    settings = json.loads(run("group", "show", name, "--json").stdout)["settings"]
    assert (settings["retries"], settings["read_at"]) == (3, "slave")
    assert (settings["consume"], settings["in_order"]) == (False, True)
    assert "nothing to change" in run("group", "update", name, code=2).stderr
    absent = run("group", "update", "nobody", "--consume", code=1)
    assert absent.stderr == "Error: group nobody does not exist\n"


def test_members_are_none_where_nobody_consumes(run, group):
    assert run("group", "members", group).stdout == "0 consumers, clustering\n"
    found = json.loads(run("group", "members", group, "--json").stdout)
    assert found == {"model": "clustering", "members": [], "subscriptions": []}


def test_all_about_a_group_is_what_show_and_members_print(run, group):
    found = json.loads(run("group", "describe", group, "--json").stdout)
    for command in ("show", "members"):
        part = json.loads(run("group", command, group, "--json").stdout)
        assert part.items() <= found.items()
    text = run("group", "describe", group).stdout
    assert text == (
        run("group", "show", group).stdout
        + "\n"
        + run("group", "members", group).stdout
    )
    assert "does not exist" in run("group", "describe", "nosuch", code=1).stderr


def test_a_deleted_group_is_gone_with_its_offsets(run, group, ropeway_topic):
    assert "Delete group" in run("group", "delete", group, stdin=b"n\n", code=1).stderr
    deleted = run("group", "delete", group, "--yes")
    assert deleted.stdout == f"group {group} deleted\n"
    for command in ("show", "delete"):
        args = ["--yes"] if command == "delete" else []
        result = run("group", command, group, *args, code=1)
        assert result.stderr == f"Error: group {group} does not exist\n"
    again = run("consume", ropeway_topic, "--group", group, "--count", "1")
    assert again.stdout == "1\n"


@pytest.mark.parametrize(
    "line",
    [
        *("offset show {0}", "offset show {0} {1}", "group show {0}"),
        *(
            "group members {0}",
            "group update {0} --retries 1",
            "group delete {0} --yes",
        ),
        *("message dlq list {0}", "message dlq replay {0} --yes"),
    ],
)
def test_a_group_that_is_none_is_an_error(run, ropeway_topic, line):
    run("topic", "create", ropeway_topic)
    name = f"none-{ropeway_topic}"
    refused = run(*line.format(name, ropeway_topic).split(), code=1)
    assert refused.stderr == f"Error: group {name} does not exist\n"
