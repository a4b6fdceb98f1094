"""Who is connected, and what groups want, member by member."""

from __future__ import annotations

from ropeway.acl.api import Channel, Source
from ropeway.gateway.node.clients import EXPIRY_MS, MAX_ELSEWHERE, Clients
from ropeway.gateway.wire.bodies import ConsumerData, SubscriptionData
from tests.remoting import looped


class Link:
    """A connection that notes nothing."""

    language = "JAVA"
    version = 1
    address = "127.0.0.1:1"
    closed = False
    source = Source("127.0.0.1", Channel.REMOTING)

    def push(self, *_data):
        raise AssertionError("the test notes notifications itself")

    def close(self):
        raise AssertionError("who expires members closes")


def consumer(*wanted: tuple[str, str, int], group: str = "g") -> ConsumerData:
    return ConsumerData(
        group_name=group,
        subscription_data_set=[
            SubscriptionData(topic=topic, sub_string=text, sub_version=version)
            for topic, text, version in wanted
        ],
    )


def made():
    told: list[list[Link]] = []
    clock = [0]
    clients = Clients(lambda: clock[0], lambda links, _group: told.append(list(links)))
    return clients, told, clock


def test_one_client_id_on_two_connections_is_two_members():
    clients, told, _ = made()
    one, two = Link(), Link()
    clients.register_consumer(one, "me", consumer(("t", "*", 1)))
    clients.register_consumer(two, "me", consumer(("t", "*", 1)))
    clients.disconnected(one)
    assert list(clients.consumer_group("g").members) == [two]
    assert told == [[one], [one, two], [two]]


@looped
async def test_slaves_know_and_tell_nobody_until_they_lead():
    clients, told, _ = made()
    one, two = Link(), Link()
    await clients.give_up()
    clients.register_consumer(one, "one", consumer(("t", "*", 1)))
    clients.register_consumer(two, "two", consumer(("t", "*", 1), group="h"))
    assert told == []
    await clients.take_over()
    assert told == [[one], [two]]
    await clients.take_over()
    clients.disconnected(two)
    clients.register_consumer(two, "two", consumer(("t", "*", 1)))
    assert told == [[one], [two], [one, two]]


def test_the_newest_view_of_a_topic_counts_whoever_has_it():
    clients, told, _ = made()
    old, new = Link(), Link()
    clients.register_consumer(old, "old", consumer(("t", "a", 1)))
    clients.register_consumer(new, "new", consumer(("t", "b", 2)))
    told.clear()
    for _ in range(3):
        clients.register_consumer(old, "old", consumer(("t", "a", 1)))
        clients.register_consumer(new, "new", consumer(("t", "b", 2)))
        assert clients.consumer_group("g").subscriptions["t"].expression == "b"
    assert told == []


def test_two_views_of_one_version_do_not_take_turns():
    clients, told, _ = made()
    one, two = Link(), Link()
    clients.register_consumer(one, "one", consumer(("t", "a", 1)))
    clients.register_consumer(two, "two", consumer(("t", "b", 1)))
    assert clients.consumer_group("g").subscriptions["t"].expression == "a"
    assert len(told) == 2


def test_a_topic_that_a_member_no_longer_names_is_dropped():
    clients, told, _ = made()
    link = Link()
    clients.register_consumer(link, "me", consumer(("t", "*", 1), ("u", "*", 1)))
    assert clients.register_consumer(link, "me", consumer(("u", "*", 1)))
    assert set(clients.consumer_group("g").subscriptions) == {"u"}
    assert len(told) == 2


def test_the_silent_expire_and_those_that_give_a_sign_do_not():
    clients, told, clock = made()
    silent, lively = Link(), Link()
    for link in (silent, lively):
        clients.register_consumer(link, "me", consumer(("t", "*", 1)))
        clients.register_producer(link, "me", "p")
    told.clear()
    clock[0] = EXPIRY_MS
    clients.touch(lively)
    clock[0] = EXPIRY_MS + 1
    assert clients.expire() == [silent]
    assert told == [[lively]]
    assert [one.link for one in clients.producers("p")] == [lively]


def test_nothing_is_left_of_clients_that_have_gone():
    clients, _, _ = made()
    for number in range(50):
        link = Link()
        group = f"g{number}"
        clients.register_consumer(link, "me", consumer(("t", "*", 1), group=group))
        clients.register_producer(link, "me", f"p{number}")
        if number % 2:
            clients.unregister_consumer(link, group)
            clients.unregister_producer(link, f"p{number}")
        clients.disconnected(link)
    assert not clients._consumers
    assert not clients._producers
    assert not clients._groups_of_link
    assert not clients._producer_links


def test_who_has_gone_before_its_groups_were_made_is_not_registered():
    clients, told, _ = made()
    link = Link()
    clients.disconnected(link)
    link.closed = True
    assert not clients.register_consumer(link, "me", consumer(("t", "*", 1)))
    clients.register_producer(link, "me", "p")
    assert not clients._groups_of_link
    assert (clients.producers("p"), clients.consumer_group("g"), told) == ([], None, [])
    assert clients.find_producer("me") is None


def test_a_client_is_found_as_long_as_one_of_its_producers_is_there():
    clients, _, _ = made()
    old, new = Link(), Link()
    clients.register_producer(old, "me", "p")
    clients.register_producer(old, "me", "q")
    clients.unregister_producer(old, "p")
    assert clients.find_producer("me") is old
    # It has connected anew, and the old connection ends later.
    clients.register_producer(new, "me", "q")
    clients.disconnected(old)
    assert clients.find_producer("me") is new
    clients.register_producer(new, "renamed", "q")
    assert clients.find_producer("me") is None
    clients.register_consumer(new, "renamed", consumer(("t", "*", 1)))
    clients.unregister_producer(new, "q")
    assert clients.find_producer("renamed") is None


def test_what_is_known_of_other_nodes_clients_is_bounded():
    clients, _, _ = made()
    for number in range(MAX_ELSEWHERE + 1):
        clients.found_elsewhere(f"c{number}", "there")
    assert clients.find_elsewhere("c0") is None
    assert clients.find_elsewhere("c1") == "there"
    clients.found_elsewhere("c1", None)
    assert clients.find_elsewhere("c1") is None
