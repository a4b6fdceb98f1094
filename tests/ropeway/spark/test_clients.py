"""Clients are used again by the tasks of a process, unless one failed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ropeway.client import BulkReader, ClientClosedError
from ropeway.spark import clients
from ropeway.spark.clients import close_all, lent
from ropeway.spark.options import read_options
from ropeway.spark.ranges import open_reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

OPTIONS = read_options({"nameServer": "127.0.0.1:1"})


@pytest.fixture(autouse=True)
def _none_is_kept() -> Iterator[None]:
    close_all()
    yield
    close_all()


def reader(name: str = "g") -> AbstractContextManager:
    return lent(BulkReader, OPTIONS, lambda: open_reader(OPTIONS), name)


def test_a_client_is_used_again() -> None:
    with reader() as first:
        pass
    with reader() as second, reader() as third:
        assert second.client is first.client
        assert third.client is not first.client
    with reader("other") as other:
        assert other.client not in (first.client, third.client)


def test_a_client_that_a_task_failed_with_is_closed() -> None:
    with pytest.raises(ValueError, match="of a task"), reader() as first:
        raise ValueError("of a task")
    with pytest.raises(ClientClosedError):
        first.call(first.client.start())
    with reader() as second:
        assert second.client is not first.client


def test_few_are_kept() -> None:
    found = []
    for name in "abcdefgh":
        with reader(name) as one:
            found.append(one.client)
    with reader("h") as last, reader("a") as first:
        assert last.client is found[-1]
        assert first.client is not found[0]


def test_a_process_that_was_forked_has_none_of_its_parents(monkeypatch) -> None:
    with reader() as first:
        pass
    monkeypatch.setattr(clients, "_pid", os.getpid() + 1)
    with reader() as second:
        assert second.client is not first.client
    first.call(first.client.close())
    first.thread.stop()
