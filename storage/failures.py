"""What a log says where the operating system did not do something."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_of
from ropeway.storage.api import LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def unavailable(failure: str, remedy: str = "") -> Iterator[None]:
    """Turn an error of the system within into one of the log.

    Args:
        failure: What was not done.
        remedy: What is said behind the reason.

    Raises:
        LogUnavailableError: The system failed; names what was not done, and why.
    """
    try:
        yield
    except OSError as error:
        raise LogUnavailableError(f"{failure}: {reason_of(error)}{remedy}") from error
