"""Names and contents of nodes: back and forth, and damage told apart."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.routing.zookeeper import codec
from ropeway.routing.zookeeper.codec import DamagedError
from tests.contracts.routes import BROKER, KITCHEN, ORDERS

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(texts, min_size=1, max_size=3))
def test_any_name_becomes_one_that_zookeeper_allows_and_comes_back(parts: list[str]):
    name = codec.node_name(*parts)
    assert codec.parts_of(name) == tuple(parts)
    assert name.isascii()
    assert name.isprintable()
    assert "/" not in name
    assert name not in {"", ".", "..", "zookeeper"} or parts == ["zookeeper"]


@given(texts)
def test_a_name_is_read_or_refused(name: str):
    try:
        parts = codec.parts_of(name)
    except DamagedError:
        return
    assert codec.node_name(*parts) == name


@pytest.mark.parametrize(
    ("node", "is_one"),
    [
        *[("orders", True), ("%25RETRY%25g", True), ("%", True)],
        *[("a,b", False), ("a,b,c", False), ("b%2", False), ("a b", False)],
    ],
)
def test_a_topic_group_or_broker_is_named_by_one_part(node: str, is_one: bool):
    assert codec.is_name(node) is is_one


def test_names_of_rocketmq_stay_readable():
    assert codec.node_name("orders-1_x") == "orders-1_x"
    assert codec.node_name("%RETRY%g") == "%25RETRY%25g"
    assert codec.node_name("tenant|ns%t") == "tenant%7Cns%25t"
    assert codec.node_name("a/b", "") == "a%2Fb,%"


def test_a_change_is_read_from_the_name_of_its_node():
    prefix = codec.change_prefix("settings", codec.node_name("a", "b"), "c1")
    assert codec.parse_change(f"{prefix}0000000012") == ("settings", "a,b")
    assert codec.number_of(f"{prefix}0000000012") == 12


@pytest.mark.parametrize("name", ["x", "topics,a,c,", "topics,a,c,x", ",", "%zz,1"])
def test_a_name_without_a_number_is_no_change(name: str):
    assert codec.number_of(name) in {-1, 1}
    assert codec.parse_change(name) is None or codec.number_of(name) == -1


def test_changes_of_kinds_that_come_later_are_passed_over():
    assert codec.parse_change("users,a,c,0000000001") is None


def test_nodes_of_a_broker_are_in_the_order_of_their_numbers():
    names = ["a,0000000010", "b,0000000009", "nothing", "c,x"]
    found = sorted(filter(None, map(codec.parse_announcement, names)))
    assert [(one.node, one.path) for one in found] == [
        ("b", "b,0000000009"),
        ("a", "a,0000000010"),
    ]


def test_what_is_stored_comes_back():
    assert codec.load("topics", "orders", codec.dump(ORDERS)) == ORDERS
    assert codec.load("groups", "kitchen", codec.dump(KITCHEN)) == KITCHEN
    assert codec.load("settings", "a,b", codec.dump("ä")) == "ä"
    assert codec.load_broker(codec.dump(BROKER)) == BROKER


def orders(**changed: object) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(ORDERS), **changed})


@pytest.mark.parametrize(
    ("node", "data", "reason"),
    [
        ("orders", b"", "truncated"),
        ("orders", b"\xff", "malformed"),
        ("orders", b"[]", "array"),
        ("orders", orders(read_queue_nums="1"), "int"),
        ("orders", orders(route={"b": [1024]}), "partition 1024 .* 0 to 1023"),
        ("orders", orders(route={"b": [-1]}), "partition -1"),
        ("orders", orders(route={"b": [2, 3], "c": [3]}), "partition 3 .* twice"),
        ("other", orders(), "holds 'orders'"),
        ("orders,x", orders(), "2 parts; allowed: 1"),
        ("orders%2", orders(), "nothing has the name"),
    ],
)
def test_a_damaged_topic_says_what_it_holds(node: str, data: bytes, reason: str):
    with pytest.raises(DamagedError, match=reason):
        codec.load("topics", node, data)


def test_a_damaged_broker_says_what_it_holds():
    with pytest.raises(DamagedError, match="truncated"):
        codec.load_broker(b"{")


@given(st.binary(max_size=40))
def test_garbage_is_damage_and_nothing_else(data: bytes):
    with pytest.raises(DamagedError):
        codec.load("topics", "orders", data)
