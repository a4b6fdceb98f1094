"""Where in Pulsar what clients name is: where the log keeps it, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ropeway.acl.pulsar.pulsar_resources import place_of, space_of
from ropeway.storage.api import LogLimitError
from ropeway.storage.pulsar.topic_names import Names


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("orders", "persistent://public/default/orders"),
        ("acme|blue%orders", "persistent://acme/blue/orders"),
        ("%RETRY%acme|blue%bills", "persistent://acme/blue/%RETRY%bills"),
        ("%DLQ%bills", "persistent://public/default/%DLQ%bills"),
        ("blue%orders", "persistent://public/default/blue%25orders"),
        ("acme|blue%a|b%c", "persistent://acme/blue/a|b%25c"),
        ("o-partition-1", "persistent://public/default/o%2Dpartition-1"),
    ],
)
def test_a_name_is_one_topic(name: str, topic: str):
    assert place_of(name, "public", "default").topic == topic


@given(st.text("ab|%-/.", max_size=30) | st.text(max_size=30))
@example("%RETRY%%DLQ%a|b%c")
@example("a|b%")
def test_it_is_where_the_log_keeps_it(name: str):
    try:
        kept = Names("public", "default").pulsar(name)
    except (LogLimitError, UnicodeEncodeError):
        return
    found = place_of(name, "public", "default")
    assert found.topic == f"persistent://{kept.tenant}/{kept.namespace}/{kept.local}"
    assert found[:2] == kept[:2]


def test_what_no_namespace_can_be_called_is_known():
    for name in ("orders", "a-b|c.d%orders", "a|..b%orders", "1|2%orders"):
        assert place_of(name, "public", "default").is_legal
    for name in ("..|b%o", "a|.%o", "a|b/c%o", "|b%o", "a|%o", "\u0430|b%o", "a|b\n%o"):
        assert not place_of(name, "public", "default").is_legal


def test_a_namespace_has_a_tenant():
    assert space_of("acme|blue") == ("acme", "blue")
    for name in ("blue", "", "|", "a|", "|b"):
        assert space_of(name) is None
