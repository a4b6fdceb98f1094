"""Partitions are free ones, shared out evenly, near ones where there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.node.placement import complaint, free, neighbours, share_out
from ropeway.routing.api import Broker, Topic


def node(broker: str, *addresses: str, cluster: str = "c") -> tuple[Broker, ...]:
    return (Broker(name=broker, node="n", cluster=cluster, addresses=addresses, pid=1),)


def test_partitions_go_to_the_broker_on_their_machine():
    brokers = {"a": {"one"}, "b": {"two"}}
    owners = {0: "two", 1: "one", 2: "two", 3: "one"}
    assert share_out(range(4), brokers, owners) == {"a": [1, 3], "b": [0, 2]}


def test_a_machine_with_most_of_the_partitions_does_not_get_them_all():
    brokers = {"a": {"one"}, "b": {"two"}, "c": {"one"}}
    everything = share_out(range(6), brokers, dict.fromkeys(range(6), "one"))
    assert {name: len(numbers) for name, numbers in everything.items()} == {
        "a": 2,
        "b": 2,
        "c": 2,
    }
    assert share_out(range(4), brokers, {3: "two"})["b"][-1] == 3


def test_without_owners_partitions_go_round():
    brokers = dict.fromkeys("abc", ())
    assert share_out(range(7), brokers, {}) == {
        "a": [0, 3, 6],
        "b": [1, 4],
        "c": [2, 5],
    }
    assert share_out(range(3), {"a": ()}, {0: "elsewhere"}) == {"a": [0, 1, 2]}


hosts = st.sampled_from(["one", "two", "three"])


@given(
    st.integers(0, 40),
    st.dictionaries(st.sampled_from("abcde"), st.sets(hosts), min_size=1),
    st.dictionaries(st.integers(0, 39), hosts),
)
def test_each_partition_has_one_broker_and_numbers_differ_by_one_at_most(
    count: int, brokers: dict[str, set[str]], owners: dict[int, str]
):
    shared = share_out(range(count), brokers, owners)
    assert shared.keys() == brokers.keys()
    everything = [number for numbers in shared.values() for number in numbers]
    assert sorted(everything) == list(range(count))
    lengths = [len(numbers) for numbers in shared.values()]
    assert max(lengths) - min(lengths) <= 1


def test_neighbours_are_those_of_the_cluster_that_run():
    brokers = {
        "broker-1": node("broker-1", "10.0.0.1:1", "[::1]:2"),
        "broker-2": node("broker-2", "x:1", cluster="other"),
        "broker-0": node("broker-0", "10.0.0.2:1"),
        "broker-3": node("broker-3", "10.0.0.3:1"),
    }
    assert neighbours(brokers, "broker-1", "c", 9) == {
        "broker-0": {"10.0.0.2"},
        "broker-1": {"10.0.0.1", "::1"},
        "broker-3": {"10.0.0.3"},
    }
    # Whoever makes the topic has a part in it, announced or not.
    assert neighbours(brokers, "broker-3", "c", 2).keys() == {"broker-0", "broker-3"}
    assert neighbours({}, "broker-7", "c", 1) == {"broker-7": set()}


def test_free_partitions_go_round_past_those_that_are_taken():
    assert free((), 0, 3) == [0, 1, 2]
    assert free({0, 2}, 0, 2) == [1, 3]
    assert free({0}, 1023, 2) == [1023, 1]
    assert free((), 5000, 1) == [5000 % 1024]
    assert free(range(1024), 7, 1) == []
    assert free((), 0, 0) == []


def test_numbers_that_cannot_be_are_said_with_what_is_allowed():
    def of(read: int, write: int, perm: int = 6) -> str | None:
        return complaint(
            Topic(name="t", read_queue_nums=read, write_queue_nums=write, perm=perm)
        )

    assert of(0, 1) is of(1024, 0) is of(1, 1, 7) is None
    assert of(1025, 1) == "readQueueNums of topic t is 1025; allowed: 0 to 1024"
    assert of(1, -1) == "writeQueueNums of topic t is -1; allowed: 0 to 1024"
    assert of(0, 0) == "topic t has no queue; allowed: at least 1"
    assert of(1, 1, 8) == "perm of topic t is 8; allowed: 0 to 7"
