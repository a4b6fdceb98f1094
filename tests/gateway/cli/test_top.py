"""`ropeway top`, on a running node."""

import json

import pytest

from tests.gateway.cli.connected import connected


@pytest.fixture
def topic(run, ropeway_topic) -> str:
    """A topic with five messages, of which a group has read two."""
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, stdin=b"1\n2\n3\n4\n5\n")
    run("consume", ropeway_topic, "--group", f"g-{ropeway_topic}", "--count", "2")
    return ropeway_topic


def test_the_busiest_come_first(run, topic):
    found = json.loads(run("top", "--once", "--rows", "1000", "--json").stdout)
    assert found.keys() == {"topics", "groups"}
    (row,) = (one for one in found["topics"] if one["topic"] == topic)
    assert row["messages"] == 5
    rates = [one["in_per_s"] for one in found["topics"]]
    assert rates == sorted(rates, reverse=True)
    (group,) = (one for one in found["groups"] if one["group"] == f"g-{topic}")
    assert group["lag"] == 3
    lags = [one["lag"] for one in found["groups"]]
    assert lags == sorted(lags, reverse=True)


@pytest.mark.parametrize("by", ["rate", "lag"])
def test_one_view_is_shown_alone(run, topic, by):
    line = ["top", "groups", "--once", "--names", f"g-{topic}", "--by", by]
    head, row = run(*line).stdout.splitlines()
    assert head.split()[:2] == ["group", "lag"]
    assert row.split()[:2] == [f"g-{topic}", "3"]


def test_it_looks_again_until_it_is_ended(run, topic, monkeypatch):
    looks = []

    def stop(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("ropeway.gateway.cli.watch.time.sleep", stop)
    line = ["top", "topics", "--names", topic, "--watch", "0.5", "--json"]
    shown = run(*line, code=130)
    assert looks == [0.5, 0.5]
    assert len([one for one in shown.stdout.splitlines() if one]) == 2


def test_consumers_are_shown_with_what_they_say(run, ropeway_gateway, topic):
    with connected(ropeway_gateway.name_server, topic):
        found = json.loads(run("top", "clients", "--once", "--json").stdout)
    assert found.keys() == {"clients"}
    (row,) = (one for one in found["clients"] if one["group"] == f"c-{topic}")
    # A pull consumer has no handlers, whose rates it could say.
    assert (row["queues"], row["lag"], row["out_per_s"]) == (1, 0, 0.0)
