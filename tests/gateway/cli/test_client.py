"""`ropeway client`."""

import json

import pytest

from ropeway.client.versions import version_text
from ropeway.gateway.wire.codes import ROPEWAY_VERSION
from tests.gateway.cli.connected import beside, connected
from tests.silent import silent_consumer


@pytest.fixture(autouse=True, scope="module")
def patient() -> None:
    """Some clients here never answer: commands wait no longer for them than always."""


@pytest.fixture
def topic(run, ropeway_topic) -> str:
    run("topic", "create", ropeway_topic, "--queues", "1")
    return ropeway_topic


def test_clients_are_listed_with_their_groups(run, ropeway_gateway, topic):
    with connected(ropeway_gateway.name_server, topic):
        found = json.loads(run("client", "list", "--json").stdout)
        mine = run("client", "list", "--group", f"p-{topic}", "--json")
    (producer,) = json.loads(mine.stdout)
    assert producer in found
    assert (producer["role"], producer["language"]) == ("producer", "PYTHON")
    assert producer["version"] == version_text(ROPEWAY_VERSION) == "5.5.0"
    (consumer,) = (one for one in found if one["group"] == f"c-{topic}")
    assert consumer["role"] == "consumer"


def test_a_client_is_described(run, ropeway_gateway, topic):
    with connected(ropeway_gateway.name_server, topic):
        listed = run("client", "list", "--group", f"c-{topic}", "--json").stdout
        (one,) = json.loads(listed)
        line = ["client", "describe", one["client_id"], "--stack"]
        text, found = run(*line).stdout, json.loads(run(*line, "--json").stdout)
    assert f"consumer in group c-{topic}" in text
    (joined,) = (one for one in found["memberships"] if one["role"] == "consumer")
    assert joined["model"] == "clustering"
    wanted = {"topic": topic, "type": "TAG", "filter": "a || b"}
    assert wanted in joined["subscriptions"]
    assert topic in [one["topic"] for one in joined["reads"]]
    assert "MainThread" in found["stack"]
    assert "MainThread" in text


def test_a_client_that_is_not_connected_is_an_error(run):
    refused = run("client", "describe", "nobody", code=1)
    assert "no client nobody is connected" in refused.stderr


def test_a_consumer_that_does_not_answer_is_described_as_far_as_it_is_known(
    run, ropeway_gateway, topic
):
    with beside(silent_consumer(ropeway_gateway.address, f"c-{topic}", topic)):
        described = run("client", "describe", "me@silent").stdout
        top = run("top", "clients", "--once", "--json").stdout
    assert "it does not answer" in described
    assert topic in described
    assert "me@silent" in top
