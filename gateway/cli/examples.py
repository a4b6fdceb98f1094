"""The end of each command's help: an example."""

from __future__ import annotations


def example(*lines: str) -> str:
    """The example as click's `epilog`; the sign keeps its lines apart."""
    return "\b\nExample:\n" + "\n".join(f"  $ {line}" for line in lines)
