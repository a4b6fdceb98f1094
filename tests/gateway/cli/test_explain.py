"""`ropeway explain`."""

import json

from tests.gateway.cli.conftest import objects


def test_the_reason_and_what_to_do_are_printed(run, ropeway_topic):
    (sent,) = objects(run("produce", ropeway_topic, "one coffee", "--json"))
    group = f"g-{ropeway_topic}"
    run("group", "create", group)
    asked = ["explain", sent["msg_id"], group, "--topic", ropeway_topic]
    shown = json.loads(run(*asked, "--output", "json").stdout)
    assert shown["message"]["body"] == "one coffee"
    codes = [one["code"] for one in shown["findings"]]
    assert codes == ["nobody-consumes", "never-read"]
    text = run(*asked).stdout.splitlines()
    assert text[0] == f"nobody-consumes: no consumer of group {group} is connected"
    assert text[1] == "  -> start one"


def test_a_message_that_is_nowhere_has_no_message(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    asked = ["explain", "nonsense", "kitchen"]
    shown = json.loads(run(*asked, "--topic", ropeway_topic, "--json").stdout)
    assert shown["message"] is None
    assert [one["code"] for one in shown["findings"]] == ["not-stored"]
    assert "name its topic with --topic" in run(*asked, code=1).stderr
