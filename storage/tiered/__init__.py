"""Tiered storage: old records of a log on a provider, read as if they were still local.

`dispatcher` copies, `reader` reads, `log` wraps a log with both. What a segment is,
`storage.sealed` says; FORMAT.md says which objects there are. `listing`, `object_names`
and the providers need nothing of a gateway.
"""
