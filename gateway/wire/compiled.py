"""Functions that may have a compiled form; Python's is the reference and always works.

The compiled forms are in `native/wire.c` and beside it, built on installation where
there is a C compiler. `ROPEWAY_PURE=1` in the environment leaves them alone.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_native: ModuleType | None
try:
    _native = importlib.import_module("ropeway.gateway.wire._native")
except ImportError:  # not built here
    _native = None

F = TypeVar("F", bound="Callable[..., Any]")

IS_PURE = _native is None or bool(os.environ.get("ROPEWAY_PURE"))
"""Whether Python's forms are used."""

TWINS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {}
"""Python's and the compiled form of each function, for the tests that compare them."""


def may_be_compiled(function: F) -> F:
    """Put the compiled form in a function's place, where there is one."""
    twin = getattr(_native, function.__name__, None)
    TWINS[function.__name__] = function, twin
    return function if IS_PURE or twin is None else cast("F", twin)
