"""A group's consumers, as several brokers know them."""

from ropeway.gateway.http.api.members import consumers
from ropeway.gateway.wire.admin_bodies import ConnectionInfo, ConsumerConnection
from ropeway.gateway.wire.bodies import SubscriptionData


def known(*clients: str, topic: str = "orders") -> ConsumerConnection:
    return ConsumerConnection(
        connection_set=[
            ConnectionInfo(
                client_addr="127.0.0.1:9", client_id=one, language="GO", version=513
            )
            for one in clients
        ],
        consume_from_where=None,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        subscription_table={topic: SubscriptionData(topic=topic, sub_string="A || B")},
    )


def test_a_client_that_two_brokers_know_is_one():
    found = consumers([known("b", "a"), known("a", topic="bills")])
    assert [one["id"] for one in found["members"]] == ["a", "b"]
    assert {one["version"] for one in found["members"]} == {"5.5.0"}
    assert [one["topic"] for one in found["subscriptions"]] == ["bills", "orders"]
    assert (found["model"], found["type"]) == ("clustering", "push")


def test_where_nobody_is_nothing_is_known():
    assert consumers([]) == {
        "model": None,
        "type": None,
        "members": [],
        "subscriptions": [],
    }
