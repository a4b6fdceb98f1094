"""What every JVM that a test starts is told: to leave no file, and what to share.

Class data sharing (JEP 350) lets a JVM map classes that an earlier one of its kind has
parsed: Pulsar 4.0.8 is up after 3.4 s of CPU, and not 5.9. The first one of a kind that
ends in order leaves an archive of them in the cache, for those that are started later.
One that is to leave one is up after 15 s of CPU, so that only one at a time is to.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.builds import cache

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

    Process = subprocess.Popen[bytes] | subprocess.Popen[str]

LEAVES = "-XX:ArchiveClassesAtExit="
LEAVES_SECONDS = 240
"""Writing an archive of 80 MB takes 5 s of CPU, on a machine that may be loaded."""
STANDALONE = "org.apache.pulsar.PulsarStandaloneStarter"
PARTS = (
    "org.apache.bookkeeper.server.Main",
    "org.apache.pulsar.PulsarBrokerStarter",
    "org.apache.pulsar.PulsarClusterMetadataSetup",
    "org.apache.pulsar.proxy.server.ProxyServiceStarter",
)
"""Programs whose classes are mostly among those of a standalone Pulsar with the same
jars. They map what it has left, and leave nothing: tests kill them, and a JVM that is
to leave an archive starts with twice the CPU."""
_leaving: dict[Path, int] = {}
"""The lock of each kind of which a JVM of this process is to leave an archive."""
IN_ORDER = (0, 128 + 15)
"""How a JVM ends by itself, and at a SIGTERM; a kill leaves none, or half of one."""


def options() -> list[str]:
    """Options of any JVM.

    It does not look at TMPDIR. Libraries unpack themselves into its folder, and
    certificates are made there; one that is killed leaves them.
    """
    return [f"-Djava.io.tmpdir={tempfile.gettempdir()}", "-XX:-UsePerfData"]


def command(arguments: Sequence[str], *, shares: bool = False) -> list[str]:
    """A command line as it is, or with these options where it starts a JVM.

    What comes before `java`, such as what mounts a disk for it, stays as it is.

    Args:
        arguments: The command line.
        shares: Share classes with others of its kind; `wait` waits for its end.
    """
    at = list(arguments).index("java") + 1 if "java" in arguments else 0
    if not at:
        return list(arguments)
    given = arguments[at:]
    # What mounts a disk for it takes that away as it ends, before it starts again.
    sharing = _sharing(given, may_leave=at == 1) if shares else []
    return [*arguments[:at], *options(), *sharing, *given]


def wait(process: Process, seconds: float | None = None) -> None:
    """Wait for a program's end, and let others share what a JVM has left in order.

    Args:
        process: Of a command line made by `command`.
        seconds: The most to wait, where it does not write an archive as it ends.

    Raises:
        subprocess.TimeoutExpired: It has not ended.
    """
    left = _left_by(process)
    process.wait(LEAVES_SECONDS if left and seconds is not None else seconds)
    if left is not None:
        if process.returncode not in IN_ORDER:
            left.unlink(missing_ok=True)
        elif left.exists():
            # Whole from the moment in which it has its name.
            left.rename(left.with_suffix(""))
        if (lock := _leaving.pop(left.with_suffix(""), None)) is not None:
            os.close(lock)


def leaves(process: Process) -> bool:
    """Whether a program of a command line made by `command` is to leave an archive."""
    return _left_by(process) is not None


def _left_by(process: Process) -> Path | None:
    assert isinstance(process.args, list)
    for one in map(str, process.args):
        if one.startswith(LEAVES):
            return Path(one.removeprefix(LEAVES))
    return None


def _is_alone(archive: Path) -> bool:
    """Whether nobody else is to leave this archive, until `wait` has returned."""
    if archive in _leaving:
        return False
    lock = os.open(archive.with_suffix(".lock"), os.O_CREAT | os.O_WRONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return False
    _leaving[archive] = lock
    return True


def _sharing(given: Sequence[str], *, may_leave: bool) -> list[str]:
    at = given.index("-cp")
    options, classpath, main = given[:at], given[at + 1], given[at + 2]
    is_part = main in PARTS
    kind = _kind(options, classpath, STANDALONE if is_part else main)
    archive = cache() / "classes" / f"{kind}.jsa"
    # What cannot be used is left alone, and is nothing that a program says.
    quiet = "-Xlog:cds*=off"
    if archive.exists():
        return [quiet, f"-XX:SharedArchiveFile={archive}"]
    archive.parent.mkdir(parents=True, exist_ok=True)
    if is_part or not may_leave or not _is_alone(archive):
        return []
    return [quiet, f"{LEAVES}{archive}.{secrets.token_hex(8)}"]


def installed() -> str:
    """Which Java there is: a word that another one has not."""
    return _digest([_fact(_java())])


def _kind(options: Sequence[str], classpath: str, main: str) -> str:
    """What two JVMs must have in common for one to use the other's archive."""
    facts = [_fact(one) for one in (_java(), *_jars(classpath))]
    said = [one for one in options if one.startswith(("-XX:+Use", "--"))]
    return _digest((facts, said, main))


def _java() -> Path:
    return Path(os.path.realpath(shutil.which("java") or "java"))


def _fact(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _digest(facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]


def _jars(classpath: str) -> Iterator[Path]:
    for part in map(Path, classpath.split(":")):
        yield from sorted(part.parent.glob("*.jar")) if part.name == "*" else [part]
