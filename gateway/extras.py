"""Packages that not everybody has: those of Ropeway's extras."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


def package(module: str, extra: str) -> Any:
    """Import a module that needs packages of an extra.

    Raises:
        ConfigError: They are not installed.
    """
    with needing(extra):
        return importlib.import_module(module)


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Say where missing packages come from, of what is imported within the block.

    Raises:
        ConfigError: They are not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed; it comes with: pip install "
            f"ropeway[{extra}]"
        ) from error
