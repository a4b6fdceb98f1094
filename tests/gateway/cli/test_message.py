"""`ropeway message`."""

import json

import pytest

from ropeway.gateway.wire.trace import TRACE_TOPIC
from tests.gateway.cli.conftest import objects


@pytest.fixture
def sent(run, ropeway_topic) -> dict:
    """What sending a message with a key printed."""
    (result,) = objects(
        run("produce", ropeway_topic, "one coffee", "--key", "order-7", "--json")
    )
    return result


def test_a_message_is_viewed_by_its_offset_message_id(run, sent, ropeway_topic):
    for topic in ([], ["--topic", ropeway_topic]):
        (found,) = objects(
            run("message", "view", sent["offset_msg_id"], *topic, "--json")
        )
        assert (found["body"], found["offset"]) == ("one coffee", sent["offset"])
    shown = run("message", "view", sent["offset_msg_id"]).stdout
    assert "body: one coffee\n" in shown
    assert "property KEYS: order-7\n" in shown


def test_messages_are_found_by_key_and_by_unique_key(run, sent, ropeway_topic):
    (by_key,) = objects(run("message", "query", ropeway_topic, "order-7", "--json"))
    (by_id,) = objects(
        run("message", "query", ropeway_topic, sent["msg_id"], "--unique", "--json")
    )
    assert by_key == by_id
    assert by_key["msg_id"] == sent["msg_id"]


def test_what_is_not_found_is_an_error(run, sent, ropeway_topic):
    result = run("message", "query", ropeway_topic, "other", code=1)
    assert result.stderr == (
        f"Error: topic {ropeway_topic} has no message with key other\n"
    )
    missing = sent["offset_msg_id"][:-4] + "FFFF"
    assert "can not find message" in run("message", "view", missing, code=1).stderr
    assert "name its topic" in run("message", "view", "zz", code=1).stderr


def test_a_message_is_viewed_by_its_producers_id_with_its_topic(
    run, sent, ropeway_topic
):
    asked = ["message", "view", sent["msg_id"], "--topic", ropeway_topic, "--json"]
    (found,) = objects(run(*asked))
    assert found["offset_msg_id"] == sent["offset_msg_id"]


def test_messages_of_a_time_are_found(run, sent, ropeway_topic):
    run("produce", ropeway_topic, "two teas", "--tag", "open")
    search = ["message", "search", ropeway_topic]
    bodies = [one["body"] for one in objects(run(*search, "--json"))]
    assert bodies == ["one coffee", "two teas"]
    shown = run(*search, "--tag", "open", "--format", "{body}").stdout
    assert shown == "two teas\n"
    assert run(*search, "--count", "1", "--format", "{body}").stdout == "one coffee\n"
    assert run(*search, "--from", "0", "--until", "1h").stdout == ""
    odd = run(*search, "--from", "yesterday", code=2).stderr
    assert "allowed: how long ago, like 10m; milliseconds" in odd


def test_what_clients_wrote_down_of_a_message_is_printed(run, sent):
    identity = sent["msg_id"]
    missing = run("message", "trace", identity, code=1)
    assert f"no client wrote a trace of message {identity}" in missing.stderr
    sent_by = ["5", "region", "payers", "orders", identity, "", "k", "host", "9"]
    steps = (
        ["Pub", *sent_by, "3", "0", "", "true"],
        ["SubBefore", "10", "region", "readers", "R", identity, "2", "k"],
        ["SubAfter", "R", identity, "7", "false", "k", "0", "20", "readers"],
    )
    body = "".join("\x01".join(fields) + "\x02" for fields in steps)
    run("produce", TRACE_TOPIC, body, "--key", identity)
    rows = json.loads(run("message", "trace", identity, "--json").stdout)
    assert [(row["step"], row["group"], row["result"]) for row in rows] == [
        ("Pub", "payers", "ok"),
        ("SubBefore", "readers", None),
        ("SubAfter", "readers", "failed"),
    ]
    assert [row["took_ms"] for row in rows] == [3, None, 7]
    assert "SubAfter" in run("message", "trace", identity).stdout
