"""Errors of the system in the system's words."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from ropeway.common.reasons import reason_at, reason_of
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


def failure_of(path: Path) -> OSError:
    try:
        path.read_bytes()
    except OSError as error:
        return error
    raise AssertionError(path)


def test_a_path_is_left_to_who_tells_whose_it_is(tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    assert reason_of(failure_of(lost)) == "No such file or directory"
    assert reason_at(failure_of(lost)) == f"{lost}: No such file or directory"
    assert reason_of(failure_of(tmp_path)) == "Is a directory"


@looped
async def test_an_address_that_nobody_listens_at_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError) as caught:
            await asyncio.open_connection(*taken.getsockname())
    assert "Errno" in str(caught.value)
    assert reason_of(caught.value) == "Connection refused"
    assert reason_at(caught.value) == "Connection refused"


def test_python_s_numbers_and_places_are_left_out() -> None:
    several = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1)")
    assert reason_of(several) == "Multiple exceptions: Connect call failed ('::1', 1)"
    alert = ssl.SSLError(1, "[SSL: TLSV1_ALERT] tlsv1 alert (_ssl.c:2580)")
    assert reason_of(alert) == "[SSL: TLSV1_ALERT] tlsv1 alert"
    unknown = socket.gaierror(-2, "Name or service not known")
    assert reason_of(unknown) == "Name or service not known"


def test_there_is_always_a_word() -> None:
    assert reason_of(TimeoutError()) == "no answer in time"
    assert reason_of(ConnectionError("the other side is gone")) == (
        "the other side is gone"
    )
    assert reason_of(KeyError()) == "KeyError"
