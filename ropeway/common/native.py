"""The registry of functions that have a compiled form; Python's is the reference.

The compiled forms are built from `native/` on installation where there is a C compiler.
`ROPEWAY_PURE=1` in the environment leaves them alone.

Laws:

* Both forms take, refuse and give the same bytes; `tests/fuzz/test_twins.py` holds each
  pair to that. The compiled one may return None, where Python's form says what that
  means: the general form is asked then.
* This is the one place that looks for compiled modules, since `gateway/wire` and logs
  have some and know nothing of each other.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sized
    from types import ModuleType

F = TypeVar("F", bound="Callable[..., Any]")
Twins = dict[str, tuple["Callable[..., Any]", "Callable[..., Any] | None"]]

TABLES: dict[str, Twins] = {}
"""By compiled module and function: Python's form and the compiled one, if it is built.
"""


def count_of(rows: Sized, row_bytes: int, least: int = 0) -> int:
    """How many rows of one size some bytes are.

    Raises:
        ValueError: The last one is not whole, or there are too few.
    """
    count, rest = divmod(len(rows), row_bytes)
    if rest or count < least:
        raise ValueError(
            f"{len(rows)} bytes; allowed: at least {least} times {row_bytes}"
        )
    return count


class Forms:
    """The functions of one compiled module; a decorator.

    Args:
        module: Where it would be.
    """

    def __init__(self, module: str) -> None:
        self._native: ModuleType | None
        try:
            self._native = importlib.import_module(module)
        except ImportError:  # not built here
            self._native = None
        self.is_pure = self._native is None or bool(os.environ.get("ROPEWAY_PURE"))
        """Whether Python's forms are used."""
        self.twins: Twins = TABLES.setdefault(module, {})
        """Python's and the compiled form of each, for the tests that compare them."""

    def __call__(self, function: F) -> F:
        """Give the compiled form of a function, where there is one."""
        twin = getattr(self._native, function.__name__, None)
        self.twins[function.__name__] = function, twin
        return function if self.is_pure or twin is None else cast("F", twin)
