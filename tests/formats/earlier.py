"""The program of an earlier version, which tests run beside this one.

    $ python -m tests.formats.earlier COMMIT

keeps the server of a commit, byte for byte, without its C, its Spark parts and its
page. The history that it is taken from need not be there where it is run: a shallow or
exported checkout has none. It is not made again; what comes after a release takes the
release's own files.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

from tests.builds import unpacked_file

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "earlier"
_TAKEN = [
    *("acl", "gateway", "ropeway", "routing", "storage"),
    *(":(exclude)ropeway/spark", ":(exclude)ropeway/streams"),
    *(":(exclude)*.css", ":(exclude)*.html", ":(exclude)*.js", ":(exclude)*.svg"),
    *(":(exclude)*.md", ":(exclude)*.proto", ":(exclude)*.pyi"),
]


def earlier_version() -> Path:
    """The folder that has the package `ropeway` of the version that is kept."""
    (kept,) = KEPT.glob("*.tar.xz")
    return unpacked_file(kept)


def main() -> None:
    """Keep the version of a commit."""
    (commit,) = sys.argv[1:]
    files = subprocess.check_output(["git", "archive", commit, *_TAKEN], cwd=ROOT)
    KEPT.mkdir(exist_ok=True)
    target = KEPT / f"{commit}.tar.xz"
    target.write_bytes(lzma.compress(files, preset=9 | lzma.PRESET_EXTREME))
    print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
