"""Whole expressions, for tests that do not care for steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ropeway.gateway.node.sql.grammar import parse_in_steps

if TYPE_CHECKING:
    from ropeway.gateway.node.sql.nodes import Node


def parse(text: str) -> Node:
    """Read an expression in all its steps."""
    *_, whole = parse_in_steps(text)
    return cast("Node", whole)
