"""What fuzzers give each function that has a compiled form, by compiled module."""

from tests.fuzz import storage_targets, wire_targets

TARGETS = {
    "ropeway.gateway.wire._native": wire_targets.TARGETS,
    **storage_targets.TARGETS,
}
