"""Functions of reading that may have a compiled form; Python's is the reference.

The compiled forms are `native/reading.c`, built on installation where there is a C
compiler. `ROPEWAY_PURE=1` in the environment leaves them alone.
"""

from __future__ import annotations

import importlib
import os
import zlib
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_native: ModuleType | None
try:
    _native = importlib.import_module("storage.file._reading")
except ImportError:  # not built here
    _native = None

F = TypeVar("F", bound="Callable[..., Any]")

TWINS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {}
"""Python's and the compiled form of each function, for the tests that compare them."""


def may_be_compiled(function: F) -> F:
    """Give the compiled form of a function, where there is one."""
    twin = getattr(_native, function.__name__, None)
    TWINS[function.__name__] = function, twin
    if twin is None or os.environ.get("ROPEWAY_PURE"):
        return function
    return cast("F", twin)


crc32 = may_be_compiled(zlib.crc32)
"""For megabytes: several times faster than zlib's, and as it lets others run."""
