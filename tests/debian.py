"""Debian's packages of other processors and releases: unpacked, none is installed."""

import shutil
from pathlib import Path

from tests.builds import built, run_tool
from tests.starts import DownloadError

SOURCES = Path("/etc/apt/sources.list.d/debian.sources")


def mirror() -> str:
    """Where this machine's Debian packages come from.

    Raises:
        DownloadError: It is no Debian 12 or newer.
    """
    lines = SOURCES.read_text().splitlines() if SOURCES.exists() else []
    for line in lines:
        if line.startswith("URIs:"):
            return line.split()[1]
    raise DownloadError(f"{SOURCES} names no mirror of Debian's packages")


def packages(suite: str, *names: str) -> Path:
    """The files of packages and of all that they need.

    Args:
        suite: Of Debian, as `bookworm`.
        names: With the processor where that is another, as `python3:arm64`.
    """
    source = f"deb {mirror()} {suite} main"
    processors = {name.partition(":")[2] or "amd64" for name in names}

    def download(folder: Path) -> None:
        work = folder / "apt"
        for name in ("state/lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True)
        (work / "status").touch()
        (work / "sources").write_text(f"{source}\n")
        # Of what this machine has and gets from where, apt is told nothing.
        options = {
            "Dir::State": work / "state",
            "Dir::State::status": work / "status",
            "Dir::Cache": work / "cache",
            "Dir::Etc::sourcelist": work / "sources",
            "Dir::Etc::sourceparts": "-",
            "Acquire::Languages": "none",
            "APT::Sandbox::User": "root",
        }
        apt = ["apt-get", "-qq", *(f"-o{key}={one}" for key, one in options.items())]
        apt += [f"-oAPT::Architectures::={one}" for one in sorted(processors)]
        run_tool([*apt, "update"], folder)
        only = ["install", "--download-only", "--yes", "--no-install-recommends"]
        run_tool([*apt, *only, *names], folder)
        for deb in (work / "cache/archives").glob("*.deb"):
            run_tool(["dpkg-deb", "-x", str(deb), str(folder)], folder)
        shutil.rmtree(work)

    return built("debian", [], " ".join([source, *names]), download)
