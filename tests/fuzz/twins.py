"""Every function that has a compiled form, both its forms, and how a fuzzer calls them.

A target makes arguments of bytes. It keeps to what a function's callers promise, as
that an offset is not negative; what comes from a client, a disk or another server is
whatever the bytes are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fuzz.mutate import mutate

if TYPE_CHECKING:
    import random

Form = Callable[..., Any]

ROOT = Path(__file__).parents[2]
DECLARING = (
    "ropeway.gateway.node.timer.pending_timers",
    "ropeway.gateway.wire.compaction_rows",
    "ropeway.gateway.wire.frame",
    "ropeway.gateway.wire.record_rewrite",
    "ropeway.gateway.wire.send_codec",
    "ropeway.storage.compaction.steps",
    "ropeway.storage.file.block",
    "ropeway.storage.file.log_scan",
    "ropeway.storage.file.selection",
    "ropeway.storage.sealed.columns",
)
"""Modules that put their functions into `TABLES` when they are imported."""
for _name in DECLARING:
    import_module(_name)

KINDS = (ValueError, OverflowError)
"""How a form may refuse what it is given; anything else is a fault."""
GARBAGE_BYTES = 300


class Target(NamedTuple):
    """A function, and what it is given."""

    call: Callable[[Form, bytes], Any]
    """Makes arguments of bytes, calls a form, and gives all that it did."""
    seeds: list[bytes]


class Refused(NamedTuple):
    """What a form makes of bytes that it does not take."""

    kind: type[Exception]


def extensions() -> dict[str, tuple[list[Path], list[Path]]]:
    """The compiled modules that an installation builds: sources and headers."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {
        one["name"]: (
            [ROOT / path for path in one["sources"]],
            [ROOT / path for path in one.get("depends", [])],
        )
        for one in setup["tool"]["setuptools"]["ext-modules"]
    }


def outcome(target: Target, form: Form, data: bytes) -> Any:
    """What a form makes of bytes."""
    try:
        return target.call(form, data)
    except KINDS as error:
        return Refused(next(kind for kind in KINDS if isinstance(error, kind)))


def given_to(target: Target, chance: random.Random) -> bytes:
    """Bytes for one round: a damaged seed, or now and then garbage."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randint(0, GARBAGE_BYTES))
    return mutate(chance, chance.choice(target.seeds), target.seeds)
