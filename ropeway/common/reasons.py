"""Why something failed, in the words of the operating system and not of Python."""

from __future__ import annotations

import os
import re

_PYTHONS_OWN = re.compile(r"\[Errno -?\d+\] | \(_ssl\.c:\d+\)")


def reason_of(error: BaseException) -> str:
    """Give an error's reason, without its number and without a path or an address.

    Clients read it as well: what is whose is said around it.

    Source: Python's errors of the system are "[Errno 28] No space left on device:
    '/data/log/7.segment'" as text, and asyncio puts "Connect call failed" and an
    address in the place of the system's words.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number and number > 0 and type(error).__module__ == "builtins":
        return os.strerror(number)
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    if isinstance(error, TimeoutError):
        text = text or "no answer in time"
    # Some of kazoo's errors are their names alone.
    return _PYTHONS_OWN.sub("", text) or type(error).__name__


def reason_at(error: BaseException) -> str:
    """Give an error's reason behind the file that it names, for who runs the node."""
    place = getattr(error, "filename", None)
    return f"{place}: {reason_of(error)}" if place else reason_of(error)
