"""What a log says where the system failed."""

from __future__ import annotations

import errno
import os

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.failures import unavailable


def test_what_was_not_done_is_said_with_the_reason_and_no_path() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/log/7.segment")
    with (
        pytest.raises(LogUnavailableError) as told,
        unavailable("cannot begin a segment", "; nothing was changed"),
    ):
        raise full
    assert str(told.value) == (
        "cannot begin a segment: No space left on device; nothing was changed"
    )
    assert told.value.__cause__ is full


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(KeyError), unavailable("cannot"):
        raise KeyError
