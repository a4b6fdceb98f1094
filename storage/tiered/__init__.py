"""Tiered storage: old records of a log on a provider, read as if they were still local.

`segment` is what the bytes mean, `dispatcher` copies, `reader` reads, `log` wraps a log
with both. FORMAT.md has every byte; `segment`, `names` and the providers need nothing
of a gateway.
"""
