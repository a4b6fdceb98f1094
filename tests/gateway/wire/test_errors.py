"""What a reader of bytes from a peer has to catch."""

from __future__ import annotations

import pytest

from ropeway.gateway.wire.errors import FrameError, HeaderError, MessageError, WireError


@pytest.mark.parametrize("kind", [FrameError, HeaderError, MessageError])
def test_every_error_of_the_wire_is_one_family(kind: type[Exception]) -> None:
    assert issubclass(kind, WireError)


def test_errors_that_need_different_answers_are_not_each_other() -> None:
    assert not issubclass(FrameError, HeaderError | MessageError)
    assert not issubclass(HeaderError, FrameError | MessageError)
