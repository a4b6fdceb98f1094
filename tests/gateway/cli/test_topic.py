"""`ropeway topic`."""

import json


def test_a_topic_is_made_once(run, ropeway_topic):
    made = run("topic", "create", ropeway_topic, "--queues", "3")
    assert made.stdout == f"topic {ropeway_topic} created\n"
    again = run("topic", "create", ropeway_topic, code=1)
    assert again.stderr == f"Error: topic {ropeway_topic} exists already\n"
    rows = json.loads(run("topic", "stats", ropeway_topic, "--json").stdout)["queues"]
    assert [row["queue_id"] for row in rows] == [0, 1, 2]


def test_a_topic_is_made_with_attributes(run, ropeway_topic):
    more = ["--attribute", "message.type=FIFO", "--attribute", "reserve.time=5"]
    assert run("topic", "create", ropeway_topic, *more).stdout
    refused = run("topic", "create", "other", "--attribute", "colour=red", code=1)
    assert "unsupported key: colour; allowed: message.type" in refused.stderr


def test_an_update_changes_what_is_given_and_leaves_the_rest(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2", "--perm", "4")
    run("topic", "update", ropeway_topic, "--queues", "4")
    refused = run("produce", ropeway_topic, "a", code=1)
    assert "Error: " in refused.stderr
    run("topic", "update", ropeway_topic, "--perm", "6")
    rows = json.loads(run("topic", "stats", ropeway_topic, "--json").stdout)["queues"]
    assert len(rows) == 4
    run("produce", ropeway_topic, "a", "--queue", "3")


def test_users_topics_are_listed_and_all_where_wanted(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    run("produce", ropeway_topic, "a")
    line = ["consume", ropeway_topic, "--group", "lister", "--count", "1"]
    run(*line, "--timeout", "60")
    names = {row["topic"] for row in json.loads(run("topic", "list", "--json").stdout)}
    assert ropeway_topic in names
    hidden = {"TBW102", "broker-0", "DefaultCluster", "SCHEDULE_TOPIC_XXXX"}
    hidden.add("DefaultCluster_REPLY_TOPIC")
    assert not names & hidden
    assert not any(name.startswith("%") for name in names)
    everything = run("topic", "list", "--all").stdout.split()
    assert hidden | names <= set(everything)


def test_a_deleted_topic_is_gone(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    kept = run("topic", "delete", ropeway_topic, stdin=b"n\n", code=1)
    assert "Delete topic" in kept.stderr
    deleted = run("topic", "delete", ropeway_topic, "--yes")
    assert deleted.stdout == f"topic {ropeway_topic} deleted\n"
    again = run("topic", "delete", ropeway_topic, "--yes", code=1)
    assert again.stderr == f"Error: topic {ropeway_topic!r} does not exist\n"
    assert "does not exist" in run("topic", "show", ropeway_topic, code=1).stderr


def test_what_cannot_be_a_topic_is_refused_in_the_brokers_words(run):
    result = run("topic", "create", "a b", code=1)
    assert "illegal characters" in result.stderr
    assert "--queues" in run("topic", "create", "t", "--queues", "1025", code=2).stderr


def test_a_name_server_that_is_not_there_is_one_line(run, ropeway_topic):
    result = run("topic", "list", "--name-server", "127.0.0.1:1", code=3)
    assert result.stderr.startswith("Error: 127.0.0.1:1")
    assert result.stderr.count("\n") == 1


def test_a_topic_grows(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2")
    grown = run("topic", "expand", ropeway_topic, "--queues", "4")
    assert grown.stdout == (
        f"topic {ropeway_topic}: 2 -> 4 queues on broker broker-0\n"
    )
    fewer = run("topic", "expand", ropeway_topic, "--queues", "3", code=1)
    assert "has 4 queues on broker broker-0; allowed: more" in fewer.stderr
