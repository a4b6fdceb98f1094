"""Who wants which lite topics, and what may be new to whom."""

from __future__ import annotations

from ropeway.gateway.lite.subscribers import Subscribers


def test_news_go_to_the_subscribers_of_a_lite_topic_alone():
    subscribers = Subscribers()
    first = subscribers.get("readers", "one", "rooms")
    second = subscribers.get("readers", "two", "rooms")
    third = subscribers.get("others", "one", "rooms")
    assert subscribers.add(first, "a")
    assert not subscribers.add(first, "a")
    subscribers.add(second, "b")
    subscribers.add(third, "a")
    subscribers.announce("rooms", ["a", "c"])
    subscribers.announce("halls", ["b"])
    subscribers.announce("rooms", ["b"], "others")
    assert [list(one.ready) for one in (first, second, third)] == [["a"], [], ["a"]]
    assert [one.news.is_set() for one in (first, second, third)] == [True, False, True]
    assert subscribers.of("rooms", "a") == [first, third]
    assert subscribers.of("rooms", "a", "others") == [third]


def test_news_come_in_their_order_and_once():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    for lite in "abc":
        subscribers.add(one, lite)
    subscribers.announce("rooms", ["c", "a", "c"])
    assert list(one.ready) == ["c", "a"]


def test_what_is_unsubscribed_is_no_news():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    subscribers.add(one, "a")
    subscribers.announce("rooms", ["a"])
    assert subscribers.drop(one, "a")
    assert not subscribers.drop(one, "a")
    assert not one.ready
    assert not subscribers.of("rooms", "a")


def test_a_client_that_goes_wakes_its_pops_and_leaves_nothing():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    subscribers.add(one, "a")
    subscribers.remove(one)
    assert one.news.is_set()
    assert subscribers.find("readers", "one") is None
    assert not subscribers.of("rooms", "a")
    assert not list(subscribers)


def test_a_client_that_wants_another_parent_begins_anew():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    subscribers.add(one, "a")
    assert subscribers.get("readers", "one", "rooms") is one
    other = subscribers.get("readers", "one", "halls")
    assert not other.lites
    assert not subscribers.of("rooms", "a")
    subscribers.clear()
    assert not list(subscribers)


def test_who_wants_all_has_news_of_every_lite_topic_of_the_parent():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    other = subscribers.get("others", "other", "rooms")
    subscribers.add(one, "a")
    subscribers.add(other, "a")
    subscribers.add_all(one, ["b", "a"])
    assert one.news.is_set()
    assert (list(one.ready), one.lites) == (["b", "a"], set())
    subscribers.announce("rooms", ["c"])
    subscribers.announce("halls", ["d"])
    subscribers.announce("rooms", ["e"], "others")
    assert list(one.ready) == ["b", "a", "c"]
    assert one.wants("z")
    assert not other.wants("z")
    assert subscribers.of("rooms", "a") == [other, one]
    assert subscribers.of("rooms", "z") == [one]
    subscribers.forget("rooms", ["b", "z"])
    assert list(one.ready) == ["a", "c"]


def test_who_wants_all_no_more_has_no_news_but_of_what_it_names():
    subscribers = Subscribers()
    one = subscribers.get("readers", "one", "rooms")
    two = subscribers.get("readers", "two", "rooms")
    for each in (one, two):
        subscribers.add_all(each, ["a"])
    subscribers.drop_all(one)
    subscribers.drop_all(one)
    assert not one.ready
    assert subscribers.of("rooms", "a") == [two]
    subscribers.remove(two)
    assert not subscribers.of("rooms", "a")
    subscribers.add(one, "a")
    subscribers.announce("rooms", ["a", "b"])
    assert list(one.ready) == ["a"]
