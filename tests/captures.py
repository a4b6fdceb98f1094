"""Frames of real clients and brokers, for tests: see tests/vectors/README.md."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ropeway.gateway.wire.frame import FrameReader, RawFrame

VECTORS = Path(__file__).parent / "vectors"


class Side(NamedTuple):
    """A captured frame, and what another decoder made of its header."""

    data: bytes
    header: dict[str, Any]
    batch: list[dict[str, Any]] | None

    @property
    def raw(self) -> RawFrame:
        """The frame, cut by our reader."""
        (frame,) = FrameReader().feed(self.data)
        return frame

    @property
    def fields(self) -> dict[str, Any]:
        """The command's own fields; C++ has numbers among them."""
        return self.header.get("extFields") or {}


class Capture(NamedTuple):
    """A request and, where there was one, its answer."""

    code: int
    client: str
    request: Side
    response: Side | None

    @property
    def sides(self) -> list[Side]:
        """Both frames, or the one there is."""
        return [side for side in (self.request, self.response) if side]


def load(code: int) -> list[Capture]:
    """Every capture of a request code."""
    return [capture for capture in load_all() if capture.code == code]


@cache
def load_all() -> tuple[Capture, ...]:
    """Every capture."""
    return tuple(
        Capture(
            entry["code"],
            entry["client"],
            _side(entry["request"]),
            _side(entry["response"]) if "response" in entry else None,
        )
        for path in sorted(VECTORS.glob("*.json"))
        for entry in json.loads(path.read_text())
    )


def codes() -> list[int]:
    """The request codes that there are captures of."""
    return sorted({capture.code for capture in load_all()})


@cache
def java_headers() -> dict[str, dict[str, str]]:
    """Java's header classes: field to type, with `!` where it is required."""
    table: dict[str, dict[str, str]] = json.loads(
        (VECTORS / "java" / "headers.json").read_text()
    )
    return table


def _side(entry: dict[str, Any]) -> Side:
    return Side(
        bytes.fromhex(entry["hex"]), entry["header"], entry.get("decodedBatchBody")
    )
