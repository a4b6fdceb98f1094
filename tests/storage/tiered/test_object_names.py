"""Names of objects say what is in them, and sort by offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.tiered import object_names
from ropeway.storage.tiered.object_names import SegmentName


def test_a_name_has_topic_partition_offsets_and_part():
    name = SegmentName("orders", 7, 0xAB, 10, 20)
    assert name.object("index") == (
        "orders/7-00000000000000ab/00000000000000000010-00000000000000000020.index"
    )


@given(
    st.text(min_size=1),
    st.integers(0, 1023),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**52 - 1),
    st.integers(0, 2**52),
    st.sampled_from(object_names.PARTS),
)
def test_what_was_named_is_parsed(topic, number, identity, base, end, part):
    name = SegmentName(topic, number, identity, base, end)
    if "\ud800" <= max(topic) <= "\udfff":
        return
    text = name.object(part)
    assert object_names.parse(text) == (name, part)
    assert set(text) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=./"
    )
    assert text.startswith(object_names.topic_prefix(topic))


@pytest.mark.parametrize(
    "name",
    ["", "x", "a/b/c.index", "a/1-0/1-2.data", "a/0-00000000000000ab/x.new", "=FF/1"],
)
def test_other_names_are_not_ours(name):
    assert object_names.parse(name) is None
