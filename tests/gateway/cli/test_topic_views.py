"""The part of `ropeway topic` that looks."""

import json

import pytest


def test_a_topic_is_shown_with_its_set_up_and_its_groups(run, ropeway_topic):
    run(
        "topic",
        "create",
        ropeway_topic,
        "--queues",
        "2",
        "--attribute",
        "message.type=FIFO",
    )
    run("produce", ropeway_topic, "a")
    run("consume", ropeway_topic, "--group", f"g-{ropeway_topic}", "--count", "1")
    shown = json.loads(run("topic", "show", ropeway_topic, "--json").stdout)
    (row,) = shown["brokers"]
    assert (row["broker"], row["read_queues"], row["perm"]) == ("broker-0", 2, 6)
    assert row["attributes"] == {"message.type": "FIFO"}
    assert shown["groups"] == [f"g-{ropeway_topic}"]
    text = run("topic", "show", ropeway_topic).stdout
    assert "message.type=FIFO" in text
    assert text.endswith(f"groups: g-{ropeway_topic}\n")


def test_stats_have_the_bounds_of_queues_and_how_much_came(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2")
    run("produce", ropeway_topic, "a", "--queue", "1")
    shown = json.loads(run("topic", "stats", ropeway_topic, "--json").stdout)
    bounds = [(one["queue_id"], one["begin"], one["end"]) for one in shown["queues"]]
    assert bounds == [(0, 0, 0), (1, 0, 1)]
    assert (shown["messages"], shown["in_last_hour"]) == (1, 1)
    assert shown["in_bytes_per_s"] > shown["in_per_s"] > 0
    assert shown["approx_bytes"] > 90  # a stored message is no smaller
    assert [bool(one["newest"]) for one in shown["queues"]] == [False, True]
    assert run("topic", "stats", ropeway_topic).stdout.rstrip().endswith("last day")
    assert "1 messages, ~" in run("topic", "stats", ropeway_topic).stdout


def test_all_about_a_topic_is_its_set_up_its_queues_and_its_groups(run, ropeway_topic):
    group = f"g-{ropeway_topic}"
    run("topic", "create", ropeway_topic, "--queues", "1")
    for body in ("a", "b", "c"):
        run("produce", ropeway_topic, body)
    run("consume", ropeway_topic, "--group", group, "--count", "1")
    described = ["topic", "describe", ropeway_topic]
    found = json.loads(run(*described, "--json").stdout)
    (of_group,) = found["groups"]
    assert (of_group["group"], of_group["lag"]) == (group, 2)
    assert found["approx_bytes"] * 2 == pytest.approx(of_group["approx_lag_bytes"] * 3)
    for command, name in (("show", "brokers"), ("stats", "queues")):
        part = json.loads(run("topic", command, ropeway_topic, "--json").stdout)
        assert part[name] == found[name]
    text = run(*described).stdout
    assert "3 messages, ~" in text
    assert [*text.splitlines()[-1].split()][:2] == [group, "2"]
    refused = run("topic", "describe", "nosuch", code=1)
    assert refused.stderr == "Error: topic 'nosuch' does not exist\n"


def test_topics_are_listed_with_the_lag_of_all_groups_the_largest_first(
    run, ropeway_topic
):
    names = [f"{ropeway_topic}-{place}" for place in ("a", "b", "c")]
    for count, name in enumerate(names):
        run("topic", "create", name, "--queues", "1")
        for _ in range(count):
            run("produce", name, "x")
        for group in ("one", "two"):
            line = ["offset", "reset", f"{name}-{group}", name, "--to", "earliest"]
            run("group", "create", f"{name}-{group}")
            run(*line, "--yes")
    like = ["topic", "list", "--names", f"{ropeway_topic}.*", "--lag"]
    rows = json.loads(run(*like, "--json").stdout)
    assert rows == [
        {"topic": names[2], "lag": 4},
        {"topic": names[1], "lag": 2},
        {"topic": names[0], "lag": 0},
    ]
    row, *_ = json.loads(run(*like, "--sizes", "--json").stdout)
    assert (row["topic"], row["lag"], row["messages"]) == (names[2], 4, 2)
