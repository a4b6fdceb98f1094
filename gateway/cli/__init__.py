"""The `ropeway` command: parse, call, print."""
