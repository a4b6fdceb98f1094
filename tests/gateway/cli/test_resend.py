"""`ropeway message resend`."""

import json

import pytest

from tests.gateway.cli.conftest import objects


@pytest.fixture
def sent(run, ropeway_topic) -> dict:
    """What sending a message printed."""
    run("topic", "create", ropeway_topic, "--queues", "1")
    (result,) = objects(
        run("message", "send", ropeway_topic, "one coffee", "--tag", "paid", "--json")
    )
    return result


def test_a_message_is_sent_once_more_as_a_new_one(run, sent, ropeway_topic):
    again = json.loads(
        run("message", "resend", sent["offset_msg_id"], "--yes", "--json").stdout
    )
    assert (again["topic"], again["offset"]) == (ropeway_topic, 1)
    assert again["msg_id"] != sent["msg_id"]
    (found,) = objects(run("message", "view", again["offset_msg_id"], "--json"))
    assert (found["body"], found["tag"]) == ("one coffee", "paid")
    there = ["--topic", ropeway_topic, "--to-topic", f"{ropeway_topic}-2", "--yes"]
    other = run("message", "resend", sent["msg_id"], *there).stdout
    assert f"{ropeway_topic}-2" in other


def test_it_is_asked_back(run, sent, ropeway_topic):
    kept = run("message", "resend", sent["offset_msg_id"], stdin=b"n\n", code=1)
    assert f"Send the message to topic {ropeway_topic} again?" in kept.stderr
    found = objects(run("message", "search", ropeway_topic, "--json"))
    assert [one["body"] for one in found] == ["one coffee"]


def test_a_consumer_that_is_not_connected_is_handed_nothing(run, sent):
    to = ["--group", "kitchen", "--client", "nobody", "--yes"]
    refused = run("message", "resend", sent["offset_msg_id"], *to, code=1)
    assert "not online" in refused.stderr
    half = run("message", "resend", "x", "--group", "kitchen", code=2)
    assert "--group and --client together" in half.stderr
