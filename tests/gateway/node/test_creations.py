"""How many topics, groups and registrations one user or address may make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.acl.api import Channel, Principal, Source
from ropeway.gateway.node import creations
from ropeway.gateway.node.creations import (
    GROUP,
    TOPIC,
    Creations,
    Registrations,
    TooLongError,
    TooManyError,
    check_name,
    maker_of,
)
from ropeway.gateway.request_limits import CreationsConfig


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def made(**config: int) -> tuple[Creations, Clock]:
    clock = Clock()
    return Creations(CreationsConfig(**config), clock), clock


def test_an_hours_worth_may_come_at_once_and_more_as_time_goes():
    counted, clock = made(topics_per_hour=4)
    for _ in range(4):
        counted.take(TOPIC, "alice", 0)
    with pytest.raises(TooManyError) as refused:
        counted.take(TOPIC, "alice", 0)
    assert str(refused.value) == (
        "alice has made 4 topics within an hour; allowed: 4 "
        "(creations.topics_per_hour), more by superusers alone"
    )
    # Others, and other kinds, are not counted with it.
    counted.take(TOPIC, "bob", 0)
    counted.take(GROUP, "alice", 0)
    clock.now_s += 900
    counted.take(TOPIC, "alice", 0)
    with pytest.raises(TooManyError):
        counted.take(TOPIC, "alice", 0)
    clock.now_s += 1_000_000
    for _ in range(4):
        counted.take(TOPIC, "alice", 0)
    with pytest.raises(TooManyError):
        counted.take(TOPIC, "alice", 0)


def test_what_was_not_made_is_not_counted():
    counted, _ = made(groups_per_hour=1)
    for _ in range(5):
        counted.take(GROUP, "alice", 0)
        counted.give_back(GROUP, "alice")
    counted.give_back(GROUP, "alice")
    counted.take(GROUP, "alice", 0)
    with pytest.raises(TooManyError, match="has made 1 groups"):
        counted.take(GROUP, "alice", 0)


def test_how_many_there_are_is_bounded_for_all():
    counted, _ = made(topics=10, groups=20)
    counted.take(TOPIC, "alice", 9)
    with pytest.raises(TooManyError, match=r"there are 10 topics; allowed: 10"):
        counted.take(TOPIC, "bob", 10)
    counted.take(GROUP, "alice", 19)
    with pytest.raises(TooManyError, match=r"\(creations.groups\)"):
        counted.take(GROUP, "alice", 20)


def test_so_many_are_created_for_one_maker_at_a_time():
    counted, _ = made(at_once=2)
    with counted.under_way(TOPIC, "alice"), counted.under_way(TOPIC, "alice"):
        with (
            pytest.raises(TooManyError) as refused,
            counted.under_way(TOPIC, "alice"),
        ):
            pass
        assert str(refused.value) == (
            "2 topics are being created for alice; allowed: 2 at a time "
            "(creations.at_once); try again"
        )
        with counted.under_way(GROUP, "alice"), counted.under_way(TOPIC, "bob"):
            pass
    with counted.under_way(TOPIC, "alice"):
        pass
    assert not counted._under_way


def test_who_is_remembered_is_bounded():
    counted, _ = made(topics_per_hour=1)
    for number in range(creations.MOST_MAKERS + 1):
        counted.take(TOPIC, str(number), 0)
    assert len(counted._buckets) == creations.MOST_MAKERS
    with pytest.raises(TooManyError):
        counted.take(TOPIC, "1", 0)
    counted.take(TOPIC, "0", 0)


def test_registrations_count_while_they_are_there():
    counted = Registrations(3)
    first, second = object(), object()
    for _ in range(2):
        counted.add(first, "alice")
    counted.add(second, "alice")
    with pytest.raises(TooManyError, match=r"alice have registered 3 .*allowed: 3"):
        counted.add(second, "alice")
    # A connection stays whose it was when it first registered.
    with pytest.raises(TooManyError):
        counted.add(second, "bob")
    counted.add(object(), "bob")
    counted.remove(first)
    counted.add(second, "alice")
    counted.remove(first)
    counted.remove(second, 2)
    assert len(counted) == 1
    assert counted._counts == {"bob": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans())))
def test_what_is_counted_is_what_is_there(steps):
    counted = Registrations(4)
    there = dict.fromkeys(range(4), 0)
    for link, adds in steps:
        maker = "ab"[link % 2]
        of_maker = there[link] + there[(link + 2) % 4]
        if not adds:
            if there[link]:
                counted.remove(link)
                there[link] -= 1
        elif of_maker < 4:
            counted.add(link, maker)
            there[link] += 1
        else:
            with pytest.raises(TooManyError):
                counted.add(link, maker)
    assert len(counted) == sum(count > 0 for count in there.values())


def test_a_maker_is_the_user_or_the_network():
    def at(address: str) -> Source:
        return Source(address, Channel.REMOTING)

    assert maker_of(Principal("alice", "users"), at("192.0.2.1")) == "users:alice"
    assert maker_of(None, at("192.0.2.1")) == "192.0.2.1"
    assert maker_of(None, at("2001:db8::1")) == maker_of(None, at("2001:db8::2"))


def test_names_are_bounded():
    check_name("client id", "x" * 5, 5)
    with pytest.raises(TooLongError, match="client id of 6 characters; allowed: 5"):
        check_name("client id", "x" * 6, 5)
