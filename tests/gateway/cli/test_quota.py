"""`ropeway quota`."""

import json

import pytest


def listed(run, name: str) -> list[dict]:
    found = json.loads(run("quota", "list", "--json").stdout)
    return [one for one in found if one["name"] == name]


def test_limits_are_set_listed_and_deleted(run, ropeway_topic):
    of_topic = "--topic", ropeway_topic
    done = run("quota", "set", *of_topic, "--send-bytes", "1", "--send-requests", "5")
    assert done.stdout == f"limits of topic {ropeway_topic} set, for each node\n"
    assert "does not exist; its limits hold once it does" in done.stderr
    of_group = "--group", ropeway_topic
    done = run("quota", "set", *of_group, "--cold-bytes", "30")
    assert f"group {ropeway_topic} does not exist" in done.stderr
    run("group", "create", ropeway_topic)
    assert not run("quota", "set", *of_group, "--cold-bytes", "30").stderr
    run("quota", "set", *of_topic, "--read-bytes", "20", "--send-requests", "0")
    run("produce", ropeway_topic, "more than one byte")
    group, topic = listed(run, ropeway_topic)
    assert group == {
        "kind": "group",
        "name": ropeway_topic,
        "send_requests": None,
        "send_bytes": None,
        "read_requests": None,
        "read_bytes": None,
        "cold_bytes": 30,
        "throttled": 0,
    }
    assert (topic["send_bytes"], topic["read_bytes"]) == (1, 20)
    assert (topic["send_requests"], topic["throttled"]) == (None, 1)
    assert ropeway_topic in run("quota", "list").stdout
    assert not run("quota", "set", *of_topic, "--read-bytes", "20").stderr
    done = run("quota", "delete", *of_topic, "--yes")
    assert done.stdout == f"topic {ropeway_topic} has no limits\n"
    run("quota", "delete", "--group", ropeway_topic, "--yes")
    assert listed(run, ropeway_topic) == []


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["set", "--send-bytes", "1"], "give one of --topic and --group"),
        (["delete", "--topic", "a", "--group", "b"], "give one of --topic and --group"),
        (["set", "--topic", "a"], "give at least one limit"),
        (["set", "--group", "a", "--send-bytes", "1"], "are limits of topics"),
        (["set", "--topic", "a", "--cold-bytes", "1"], "is a limit of groups"),
        (["set", "--topic", "a", "--send-bytes", "-1"], "-1 is not in the range"),
    ],
)
def test_what_is_no_quota_is_refused(run, args, complaint):
    assert complaint in run("quota", *args, code=2).stderr


def test_a_name_that_is_none_is_refused_by_the_server(run):
    refused = run("quota", "set", "--topic", "a b", "--send-bytes", "1", code=1)
    assert "a b" in refused.stderr
