"""Sealed segments: immutable files of one partition's records, dense or sparse.

`writer` makes them, `index` opens what was made, `pick` reads records, `verify` checks;
`layout` and `columns` are the bytes. FORMAT.md has every one of them. Nothing here does
I/O or knows a gateway: tiers, compaction and Spark bring their own.
"""
