"""The cores that are mutated, and which tests look at a file of theirs first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Core:
    """A part of the sources, and the tests that are to notice a change of it.

    Args:
        sources: Files and folders.
        tests: Test folders and files of its own, by the path law.
        wider: Those that are asked after them.
        tables: Those of them that look at what imports make, such as a table of all
            processors: asked about each mutant that only an import shows.
        server: The fixture of a foreign server that `--servers` starts once for all.
    """

    sources: list[str]
    tests: list[str]
    wider: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    server: str | None = None

    def files(self, root: Path) -> list[str]:
        """The source files, relative to the tree."""
        found: set[Path] = set()
        for source in self.sources:
            path = root / source
            found |= {path} if path.is_file() else set(path.rglob("*.py"))
        return sorted(str(one.relative_to(root)) for one in found)


PROCESSORS = "tests/gateway/processors"
CORES = {
    "wire": Core(
        ["gateway/wire"],
        ["tests/gateway/wire"],
        [
            "tests/gateway/test_partial_requests.py",
            "tests/gateway/test_connection.py",
            f"{PROCESSORS}/test_send.py",
            f"{PROCESSORS}/test_pull.py",
            f"{PROCESSORS}/test_pop.py",
            f"{PROCESSORS}/test_fast_headers.py",
            f"{PROCESSORS}/test_unsupported.py",
            f"{PROCESSORS}/test_quotas.py",
        ],
    ),
    "storage/file": Core(
        ["storage/file"],
        ["tests/storage/file"],
        ["tests/ropeway/common/test_native.py", f"{PROCESSORS}/test_pull.py"],
    ),
    "storage/pulsar": Core(
        ["storage/pulsar"], ["tests/storage/pulsar"], server="pulsar"
    ),
    "pop": Core(
        ["gateway/pop"],
        ["tests/gateway/pop"],
        [
            f"{PROCESSORS}/test_pop.py",
            f"{PROCESSORS}/test_pop_acks.py",
            f"{PROCESSORS}/test_pop_looks.py",
            f"{PROCESSORS}/test_shared_retries.py",
            "tests/gateway/node/test_reauthorization.py",
        ],
    ),
    "acl": Core(
        ["acl"],
        ["tests/acl"],
        [
            "tests/gateway/test_access_control.py",
            f"{PROCESSORS}/test_access_rules.py",
            f"{PROCESSORS}/test_access_users.py",
            f"{PROCESSORS}/test_admission.py",
        ],
    ),
    "locks": Core(["gateway/node/locks.py"], ["tests/gateway/node/test_locks.py"]),
    "transactions": Core(
        ["gateway/node/transactions"],
        ["tests/gateway/node/transactions"],
        [
            f"{PROCESSORS}/test_asked_producers.py",
            f"{PROCESSORS}/test_half_message.py",
            f"{PROCESSORS}/test_transactions.py",
            f"{PROCESSORS}/test_transactions_found.py",
            f"{PROCESSORS}/test_transactions_timed.py",
        ],
    ),
    "timer": Core(
        ["gateway/node/timer"],
        ["tests/gateway/node/timer"],
        [f"{PROCESSORS}/test_timed.py", f"{PROCESSORS}/test_timed_headers.py"],
    ),
    "processors": Core(
        ["gateway/processors"],
        [PROCESSORS],
        [
            "tests/gateway/lite/test_offset_reset.py",
            "tests/gateway/pop/test_acks_used.py",
            "tests/gateway/test_request_limits.py",
            "tests/gateway/test_connection.py",
            "tests/gateway/test_server.py",
        ],
        [f"{PROCESSORS}/test_dispatch.py", f"{PROCESSORS}/test_needs.py"],
    ),
    "zookeeper": Core(
        ["routing/zookeeper"], ["tests/routing/zookeeper"], server="zookeeper"
    ),
}


def test_files(source: str) -> set[str]:
    """The test file of a source file, by the path law, and that of its package."""
    path = Path(source)
    package = path.parent
    return {
        str(Path("tests", package, f"test_{path.name}")),
        str(Path("tests", package.parent, f"test_{package.name}.py")),
    }


def distance(source: str, test: str) -> int:
    """How far a test file is from a source file: 0 by law, 1 its folder, 2 wider."""
    if test in test_files(source):
        return 0
    return 1 if Path(test).parent == Path("tests", source).parent else 2
