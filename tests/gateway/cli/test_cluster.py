"""`ropeway cluster`."""

import json


def test_each_broker_is_shown_with_what_goes_in_and_out(
    run, ropeway_gateway, ropeway_topic
):
    run("produce", ropeway_topic, "a")
    (row,) = json.loads(run("cluster", "show", "--output", "json").stdout)
    assert (row["cluster"], row["broker"]) == ("DefaultCluster", "broker-0")
    assert (row["master"], row["nodes"]) == (ropeway_gateway.address, 1)
    assert row["version"].startswith("Ropeway")
    assert row["in_today"] >= 1
    head, line = run("cluster", "show").stdout.splitlines()
    assert head.split() == list(row)
    assert line.split()[:3] == ["DefaultCluster", "broker-0", row["master"]]
