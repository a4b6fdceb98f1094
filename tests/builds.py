"""Builds the foreign programs that tests start, once for each state of their sources.

Downloads and builds are kept outside the tree, in `$ROPEWAY_CACHE` or the user's cache
folder, under a name that holds a hash of all that went in.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD_SECONDS = 600
"""A first Maven or Go build downloads some 100 MB."""


def cache() -> Path:
    """The folder for what can be made again."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ROPEWAY_CACHE") or user / "ropeway")


def classpath(pom: Path, version: str = "") -> str:
    """The jars that a pom names, downloaded: ready for `java -cp`.

    Args:
        pom: a Maven project with dependencies and nothing to compile.
        version: replaces the pom's property `rocketmq.version`.
    """

    def resolve(folder: Path) -> None:
        chosen = [f"-Drocketmq.version={version}"] if version else []
        _run(
            [
                *["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"],
                f"-Dmdep.outputFile={folder / 'classpath'}",
                *chosen,
            ],
            pom.parent,
        )

    folder = _built("classpath", [pom], version, resolve)
    jars = (folder / "classpath").read_text()
    if not all(Path(jar).exists() for jar in jars.split(":")):
        # Maven's own repository was emptied since.
        with _alone():
            resolve(folder)
    return jars


def unpacked(artifact: str) -> Path:
    """The content of an archive that Maven has, downloaded.

    Args:
        artifact: `group:name:version:tar.gz:classifier`.
    """

    def unpack(folder: Path) -> None:
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
        _run(
            [
                *["mvn", "-q", "-B", f"{plugin}:get", f"-Dartifact={artifact}"],
                "-Dtransitive=false",
            ],
            folder,
        )
        _run(
            [
                *["mvn", "-q", "-B", f"{plugin}:copy", f"-Dartifact={artifact}"],
                *[f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true"],
            ],
            folder,
        )
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()

    return _built("unpacked", [], artifact, unpack)


def java_classes(sources: Path, jars: str) -> Path:
    """The folder of classes compiled from the Java files of a folder."""
    files = sorted(sources.glob("*.java"))

    def compile_all(folder: Path) -> None:
        _run(
            ["javac", "-nowarn", "-cp", jars, "-d", str(folder), *map(str, files)],
            sources,
        )

    return _built("java", files, jars, compile_all)


def go_program(sources: Path) -> Path:
    """The binary of the Go module in a folder."""
    files = [*sorted(sources.glob("*.go")), sources / "go.mod", sources / "go.sum"]

    def compile_it(folder: Path) -> None:
        target = str(folder / "program")
        _run(
            ["go", "build", "-buildvcs=false", "-trimpath", "-o", target, "."], sources
        )

    return _built("go", files, "", compile_it) / "program"


def node_modules(sources: Path) -> Path:
    """The folder of packages that a Node.js program's lock file names, downloaded."""
    files = [sources / "package.json", sources / "package-lock.json"]

    def install(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    return _built("node", files, "", install) / "node_modules"


def python_packages(requirements: Path) -> Path:
    """The folder of exactly those packages that a file names, downloaded."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
        _run(
            [*pip, "--no-deps", "--target", str(folder), "-r", str(requirements)],
            folder,
        )

    return _built("python", [requirements], sys.version, install)


def go_version() -> tuple[int, ...]:
    """The version of Go that is installed, or nothing."""
    if shutil.which("go") is None:
        return ()
    said = subprocess.check_output(["go", "env", "GOVERSION"], text=True).strip()
    return tuple(int(part) for part in said.removeprefix("go").split(".")[:2])


def c_program(source: Path, headers: Sequence[Path] = ()) -> Path:
    """The binary of one C file, and of the headers beside it that it includes."""

    def compile_it(folder: Path) -> None:
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
        target = str(folder / "program")
        _run(["gcc", *flags, "-o", target, str(source)], source.parent)

    return _built("c", [source, *headers], "", compile_it) / "program"


def shared_object(source: Path) -> Path:
    """The library for LD_PRELOAD made of one C file."""

    def compile_it(folder: Path) -> None:
        target = str(folder / "library.so")
        _run(
            ["gcc", "-shared", "-fPIC", "-O2", "-o", target, str(source), "-ldl"],
            source.parent,
        )

    return _built("c", [source], "", compile_it) / "library.so"


def _built(
    kind: str, sources: Sequence[Path], settings: str, build: Callable[[Path], None]
) -> Path:
    digest = hashlib.sha256(settings.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    target = cache() / "builds" / f"{kind}-{digest.hexdigest()[:20]}"
    with _alone():
        if not target.exists():
            folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{kind}-"))
            try:
                build(folder)
                folder.rename(target)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return target


@contextmanager
def _alone() -> Iterator[None]:
    """Build one thing at a time: Maven's own folder is not made for two who write."""
    builds = cache() / "builds"
    builds.mkdir(parents=True, exist_ok=True)
    with (builds / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(arguments: list[str], directory: Path) -> None:
    done = subprocess.run(
        arguments,
        cwd=directory,
        check=False,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments[:3])}: {done.stdout}{done.stderr}")
