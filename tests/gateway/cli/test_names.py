"""`--names`."""

import re

from ropeway.gateway.cli.names import matching


def test_a_pattern_matches_names_as_a_whole():
    names = ["orders", "orders-eu", "reorders"]
    assert matching(names, None) == names
    assert matching(names, re.compile("orders")) == ["orders"]
    assert matching(names, re.compile("orders.*")) == ["orders", "orders-eu"]


def test_lists_are_chosen_from(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2")
    run("produce", ropeway_topic, "a")
    chosen = run("topic", "list", "--names", f"{ropeway_topic[:-2]}..").stdout.split()
    assert chosen == ["topic", ropeway_topic]
    assert run("topic", "list", "--names", ropeway_topic[:-1]).stdout == ""
    sized = ["topic", "list", "--names", ropeway_topic, "--sizes"]
    found = [line.split() for line in run(*sized).stdout.splitlines()]
    assert found[0] == [
        "topic",
        "queues",
        "messages",
        "approx_bytes",
        "in_per_s",
        "in_bytes_per_s",
        "in_last_hour",
        "newest",
    ]
    assert found[1][:3] == [ropeway_topic, "2", "1"]
    group = f"g-{ropeway_topic}"
    run("group", "create", group)
    assert run("group", "list", "--names", group).stdout.split() == ["group", group]
    refused = run("group", "list", "--names", "(", code=2)
    assert "a regular expression of Python's" in refused.stderr


def test_sizes_of_all_topics_leave_out_what_is_no_topic(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    assert ropeway_topic in run("topic", "list", "--all", "--sizes").stdout
