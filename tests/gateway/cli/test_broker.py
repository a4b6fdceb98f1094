"""`ropeway broker`."""

import json


def test_every_node_is_listed(run, ropeway_gateway):
    (row,) = json.loads(run("broker", "list", "--json").stdout)
    assert row["address"] == ropeway_gateway.address
    assert (row["rank"], row["role"], row["state"]) == (0, "master", "ok")


def test_a_broker_is_shown_with_all_that_its_nodes_say(run):
    shown = json.loads(run("broker", "show", "broker-0", "--settings", "--json").stdout)
    (node,) = shown["nodes"]
    assert (node["log"], node["routes"], node["overdue_ms"]) == (
        "embedded",
        "embedded",
        0,
    )
    assert "bootTimestamp" in node["runtime"]
    assert node["settings"]["brokerName"] == "broker-0"
    text = run("broker", "show", "broker-0", "--settings").stdout
    assert "brokerName" in text


def test_a_broker_that_is_not_there_is_an_error(run):
    result = run("broker", "show", "b9", code=1)
    assert result.stderr == "Error: there is no broker b9; there are broker-0\n"
