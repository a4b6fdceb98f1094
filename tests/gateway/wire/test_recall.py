"""Recall handles: as Java makes and reads them, and what is none."""

from __future__ import annotations

import base64

import pytest

from ropeway.gateway.wire import recall
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.recall import RecallHandle

HANDLE = RecallHandle("orders", "broker-0", 1_800_000_000_000, "7F00")
TEXT = "djEgb3JkZXJzIGJyb2tlci0wIDE4MDAwMDAwMDAwMDAgN0YwMA=="
"""What Java 5.5.0's RecallMessageHandle.HandleV1.buildHandle makes of the same."""


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def test_a_handle_is_javas():
    assert recall.dump(HANDLE).decode() == TEXT
    assert recall.parse(TEXT) == HANDLE


def test_what_comes_behind_is_left_for_later_versions():
    assert recall.parse(encoded("v1 orders broker-0 1800000000000 7F00 more")) == HANDLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "djE",
        encoded("2 orders broker-0 1800000000000 7F00"),
        encoded("v1 orders broker-0 1800000000000"),
        encoded("v1 orders broker-0 soon 7F00"),
        encoded("v1 orders broker-0 -5 7F00"),
        encoded(f"v1 orders broker-0 {10**18} 7F00"),
        base64.urlsafe_b64encode(b"v1 \xff b 1 k").decode(),
        "é",
    ],
)
def test_what_is_no_handle_is_refused(text: str):
    with pytest.raises(MessageError, match="recall handle is invalid"):
        recall.parse(text)


def test_a_handle_of_a_newer_version_is_refused_by_name():
    newer = encoded("v2 orders broker-0 1800000000000 7F00")
    with pytest.raises(
        MessageError, match="has format v2; this program reads up to v1"
    ):
        recall.parse(newer)
