"""`ropeway diff`, which is told beside `ropeway apply`."""

from ropeway.gateway.cli.apply import diff

__all__ = ["diff"]
