"""Keep a sample of each format, once for each of its versions.

    $ unshare --uts sh -c "hostname localhost; python -m tests.formats.make"

RocksDB's files have the name of the machine, which is thus nobody's.

A file that is there is never written again: it is what a program of its time has made,
and every later one has to read it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.formats import of_node, of_others  # noqa: F401 - they fill SAMPLES
from tests.formats.samples import SAMPLES

if TYPE_CHECKING:
    from tests.formats.samples import Sample

KEPT = Path(__file__).parent / "kept"
_OF_THIS_MACHINE = ("LOG", "LOCK", "OPTIONS-", "IDENTITY")
"""Files of RocksDB that name it, and are made anew; `lock` of the log holds a pid."""


def file_of(one: Sample) -> Path:
    """Where a sample is kept."""
    return KEPT / f"{one.name.replace(' ', '-')}-{one.version}.tar.gz"


def pack(directory: Path) -> bytes:
    """All files of a directory, without times and owners."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path in sorted(directory.rglob("*")):
            if not path.is_file() or path.name.startswith(_OF_THIS_MACHINE):
                continue
            if path.name == "lock":
                continue
            about = tarfile.TarInfo(str(path.relative_to(directory)))
            about.size = path.stat().st_size
            about.mode = 0o600
            with path.open("rb") as file:
                tar.addfile(about, file)
    return out.getvalue()


def main() -> None:
    """Make what is missing."""
    KEPT.mkdir(exist_ok=True)
    for one in SAMPLES:
        path = file_of(one)
        if path.exists():
            continue
        with tempfile.TemporaryDirectory() as name:
            one.make(Path(name))
            path.write_bytes(pack(Path(name)))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
