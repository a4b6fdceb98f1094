"""How a bug is seeded: a patch of the product that lasts for one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Bug = Callable[[], AbstractContextManager[object]]


def replaced(target: Any, name: str, value: Any) -> Bug:
    """A bug that puts something in the place of one name."""
    return lambda: patch.object(target, name, value)


def wrapped(target: Any, name: str, make: Callable[[Any], Any]) -> Bug:
    """A bug that puts something around a function."""
    return lambda: patch.object(target, name, make(getattr(target, name)))
