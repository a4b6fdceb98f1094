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


def test_settings_change_while_a_broker_runs_after_a_look(run):
    switch = "popConsumerKVServiceEnable"
    update = ["broker", "update", "broker-0", "--set", f"{switch}=false"]
    planned = run(*update, "--dry-run").stdout
    assert planned == f"would change {switch} from true to false of broker broker-0\n"
    assert f"{switch} from true to false" in run(*update, code=1).stderr
    assert shown(run)[switch] == "true"
    try:
        done = run(*update, "--yes").stdout
        assert done == f"broker broker-0: changed {switch} from true to false\n"
        assert shown(run)[switch] == "false"
    finally:
        run("broker", "update", "broker-0", "--set", f"{switch}=true", "--yes")
    other = ["broker", "update", "broker-0", "--set", "maxMessageSize=1", "--yes"]
    assert "change while a broker runs" in run(*other, code=1).stderr


def shown(run) -> dict:
    found = json.loads(run("broker", "show", "broker-0", "--settings", "--json").stdout)
    settings = found["nodes"][0]["settings"]
    assert isinstance(settings, dict)
    return settings
