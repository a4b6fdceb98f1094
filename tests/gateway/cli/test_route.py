"""`ropeway route`."""

import json


def test_brokers_are_shown_with_who_leads_and_who_follows(run):
    (row,) = json.loads(run("route", "show", "--json").stdout)
    assert (row["broker"], row["master"], row["slaves"]) == ("broker-0", "broker-0", [])
    assert "broker-0" in run("route", "show").stdout


def test_a_topics_queues_are_made_grow_and_are_shown(run, ropeway_topic):
    made = run(
        "route", "create", ropeway_topic, "--broker", "broker-0", "--queues", "2"
    )
    assert made.stdout == f"topic {ropeway_topic} has 2 queues on broker broker-0\n"
    run("route", "expand", ropeway_topic, "--broker", "broker-0", "--queues", "3")
    (row,) = json.loads(run("route", "show", ropeway_topic, "--json").stdout)
    assert (row["read_queues"], row["write_queues"]) == (3, 3)
    assert len(row["partitions"]) == 3
    numbers = " ".join(map(str, row["partitions"]))
    assert numbers in run("route", "show", ropeway_topic).stdout
    same = ["--broker", "broker-0", "--queues", "3"]
    assert "expand it" in run("route", "create", ropeway_topic, *same, code=1).stderr
    assert (
        "more than that" in run("route", "expand", ropeway_topic, *same, code=1).stderr
    )


def test_queues_of_the_only_broker_are_not_deleted_from_a_route(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    place = ["route", "delete", ropeway_topic, "--broker"]
    alone = run(*place, "broker-0", "--yes", code=1).stderr
    assert f"(ropeway topic delete {ropeway_topic})" in alone
    assert "it is on broker-0" in run(*place, "other", "--yes", code=1).stderr


def test_an_embedded_log_stays_with_its_node(run):
    for command in (["move", "broker-0", "--to", "other"], ["drain", "127.0.0.1"]):
        refused = run("route", *command, "--yes", code=1)
        assert "embedded log, which no other node can open" in refused.stderr
    (moved,) = json.loads(
        run("route", "move", "broker-0", "--to", "broker-0", "--yes", "--json").stdout
    )
    assert (moved["before"], moved["master"]) == ("broker-0", "broker-0")
