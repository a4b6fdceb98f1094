"""What a node's audit file has, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ropeway.gateway.config import AuditConfig

if TYPE_CHECKING:
    from pathlib import Path


def audited(data: Path, name: str = "audit.jsonl") -> AuditConfig:
    """A configuration that writes to a file."""
    data.mkdir(parents=True, exist_ok=True)
    return AuditConfig(file=data / name)


def lines(data: Path, name: str = "audit.jsonl") -> list[dict[str, Any]]:
    """Every line of it, as far as it is whole: the node may be writing."""
    *whole, _ = (data / name).read_bytes().split(b"\n")
    return [msgspec.json.decode(one) for one in whole]


def changes(
    data: Path, request: str = "", name: str = "audit.jsonl"
) -> list[dict[str, Any]]:
    """Lines of changes, of the requests with a text in their names."""
    return [
        one
        for one in lines(data, name)
        if one["event"].startswith("change") and request in one["request"]
    ]
