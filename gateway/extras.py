"""Packages that not everybody has: Ropeway's extras, and plugins."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from ropeway.gateway.config import ConfigError, PackageMissingError

if TYPE_CHECKING:
    from collections.abc import Iterator


def package(module: str, extra: str) -> Any:
    """Import a module that needs packages of an extra.

    Raises:
        ConfigError: They are not installed.
    """
    with needing(extra):
        return importlib.import_module(module)


def load_plugin(group: str, name: str, setting: str, *built_in: str) -> Any:
    """Load a plugin: an entry point of an installed package.

    Args:
        group: Of entry points, as `ropeway.acl`.
        name: Which one of it.
        setting: What names it in the configuration.
        built_in: Names that need no entry point.

    Raises:
        ConfigError: No installed package has it, or one that it needs is missing.
    """
    found = entry_points(group=group)
    if name not in found.names:
        allowed = ", ".join(sorted({*built_in, *found.names})) or "none is installed"
        raise ConfigError(f"{setting} has {name!r}; allowed: {allowed}")
    return _load(found[name])


@cache
def load_plugins(group: str) -> None:
    """Load all plugins of a group, once.

    Raises:
        ConfigError: A package that one needs is missing.
    """
    for point in entry_points(group=group):
        _load(point)


def _load(point: EntryPoint) -> Any:
    package = "" if point.dist is None else point.dist.name
    if package == "ropeway":
        with needing(point.group.rpartition(".")[2]):
            return point.load()
    try:
        return point.load()
    except ImportError as error:
        raise PackageMissingError(
            f"{package} brings {point.name!r} for {point.group}, which needs "
            f"{error.name}; install that, or remove {package}"
        ) from error


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Say where missing packages come from, of what is imported within the block.

    Raises:
        ConfigError: They are not installed.
    """
    try:
        yield
    except ImportError as error:
        raise PackageMissingError(
            f"{error.name} is not installed; it comes with: pip install "
            f"ropeway[{extra}]"
        ) from error
