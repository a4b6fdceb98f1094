"""Compaction: of some topics, the last record of each key is kept, and no other.

`log` wraps a log, `cleaner` says when, `round` what stays, `writer` and `directory` put
it in place, `partition` reads it together with what is newer. FORMAT.md has every byte.
"""
