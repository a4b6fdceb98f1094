"""Every processor: importing this fills the table that `dispatch` looks in."""

from gateway.processors import clients, namesrv, offsets, pull, query, retry, send

__all__ = ["clients", "namesrv", "offsets", "pull", "query", "retry", "send"]
