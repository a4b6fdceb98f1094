"""Queries as a property of what a consumer says of itself."""

from __future__ import annotations

import json

import msgspec
import pytest

from ropeway.client import running_queries
from ropeway.client.running_queries import PROPERTY, Batch, Query

QUERIES = [Query('a "quoted" \\ name', [Batch(1, 2, 3, None, 4, 5)]), Query("b", [])]


def said(text: str) -> bytes:
    """A ConsumerRunningInfo with the property, which is no JSON as a whole."""
    properties = json.dumps({"PROP_CONSUME_TYPE": "x", PROPERTY: text})
    return b'{"properties":%b,"mqTable":{{"queueId":0}:{}}}' % properties.encode()


def test_queries_are_read_as_they_were_written() -> None:
    assert running_queries.read(said(running_queries.encode(QUERIES))) == QUERIES


def test_most_consumers_have_none() -> None:
    assert running_queries.read(b'{"properties":{"PROP_CONSUME_TYPE":"x"}}') == []


def test_what_is_not_of_this_kind_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        running_queries.read(said("[1]"))
