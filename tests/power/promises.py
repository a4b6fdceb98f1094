"""The workloads, and for each place that syncs the one that shows why it has to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.power import (
    compaction_workloads,
    file_workloads,
    log_workloads,
    tier_workloads,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Workload(NamedTuple):
    """What is done before the cut, and how to tell what has to be there after it."""

    steps: tuple[str, ...]
    """Functions of one module, each run by a process of its own."""
    check: Callable[[Path, list[str]], None]
    before: Callable[[Path], None] | None = None
    """Makes what is there already, and durable."""

    def functions(self) -> list[str]:
        """The steps as the recorder is told."""
        return [f"{self.check.__module__}:{step}" for step in self.steps]


WORKLOADS = {
    "log, sync": Workload(("with_sync",), log_workloads.check),
    "log, async": Workload(("with_async",), log_workloads.check),
    "log, beginning": Workload(("beginning",), log_workloads.check),
    "log, killed": Workload(("killed", "opened_again"), log_workloads.check),
    "log, torn": Workload(("opened_again",), log_workloads.check, log_workloads.torn),
    "log, hole": Workload(("opened_again",), log_workloads.check, log_workloads.hole),
    "compaction": Workload(("rounds",), compaction_workloads.check),
    "tier": Workload(("uploads",), tier_workloads.check),
    "offsets": Workload(("commits",), file_workloads.check_commits),
    "routes": Workload(("routes",), file_workloads.check_routes),
    "client": Workload(("client_offsets",), file_workloads.check_client_offsets),
    "contexts": Workload(("contexts",), file_workloads.check_contexts),
    "pop": Workload(("in_flight",), file_workloads.check_in_flight),
}

SITES = {
    "ropeway.storage.directories.make_directory, names": "log, sync",
    "ropeway.storage.file.catalog.Catalog.sync": "log, sync",
    "ropeway.storage.file.expiry.unlink, names": "log, sync",
    "ropeway.storage.file.segment.create, names": "log, sync",
    "ropeway.storage.file.segment.write_file": "log, sync",
    "ropeway.storage.file.writer.Writer._write_away": "log, sync",
    "ropeway.storage.file.segments.Segments._seal": "log, async",
    "ropeway.storage.file.syncer.Syncer._sync_copies": "log, async",
    "ropeway.storage.file.recovery._finish": "log, killed",
    "ropeway.storage.file.recovery._seal": "log, killed",
    "ropeway.storage.file.segment.create": "log, killed",
    "ropeway.storage.file.segment.write_file, names": "log, killed",
    "ropeway.storage.compaction.disk.Disk.put": "compaction",
    "ropeway.storage.compaction.disk.Disk.put, names": "compaction",
    "ropeway.storage.compaction.writer.Writer._finish": "compaction",
    "ropeway.storage.compaction.writer.Writer._finish, names": "compaction",
    "ropeway.storage.tiered.posix.PosixProvider._put": "tier",
    "ropeway.storage.tiered.posix.PosixProvider._put, names": "tier",
    "ropeway.client.offsets._save": "client",
    "ropeway.gateway.cli.context_file.save": "contexts",
}
"""Functions of ours that sync files, or the names in a directory; and who shows why."""

SQLITE = {"offsets.db-wal": "offsets", "routes.db-wal": "routes", "tier.db-wal": "tier"}
"""Files that SQLite syncs because of `PRAGMA synchronous = FULL`."""
