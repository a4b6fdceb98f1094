"""Builds the foreign programs that tests start, once for each state of their sources.

Downloads and builds are kept outside the tree, in `$ROPEWAY_CACHE` or the user's cache
folder, under a name that holds a hash of all that went in.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.starts import DownloadError, started_again

DOWNLOADING = ("mvn", "go", "npm", "cargo", "apt-get")
"""Programs that fetch what others wrote before they build."""
BUILD_SECONDS = 600
"""A first Maven or Go build downloads some 100 MB."""
LIGHT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""What short-lived JVMs do with half of the CPU."""
GO_FLAGS = ("-trimpath", "-gcflags=all=-N -l")
"""Of whatever Go builds here, so that it compiles packages once: not to optimize them,
and what they import, takes a quarter less of CPU."""
COMMAND_BUILD_SECONDS = 1800
"""A large program of others' takes minutes of CPU, on a machine that may be busy."""


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
        run_tool(
            [
                *["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"],
                f"-Dmdep.outputFile={folder / 'classpath'}",
                *chosen,
            ],
            pom.parent,
        )

    folder = built("classpath", [pom], version, resolve)
    jars = (folder / "classpath").read_text()
    if not all(Path(jar).exists() for jar in jars.split(":")):
        # Maven's own repository was emptied since.
        with alone(folder.parent):
            resolve(folder)
    return jars


def maven_artifacts(project: Path, poms: Sequence[Path], tests: str) -> None:
    """Have Maven download all that a project is built and tested with.

    Args:
        project: The folder of a project, maybe of several modules.
        poms: Those of the project and of its modules.
        tests: Quick tests, at least one of each module: what runs them is downloaded
            when it runs some.
    """

    def resolve(folder: Path) -> None:
        copy = folder / "project"
        shutil.copytree(project, copy)
        run_tool(["mvn", "-q", "-B", "-f", str(copy), "test", f"-Dtest={tests}"], copy)
        shutil.rmtree(copy)

    built("maven", [], "".join(pom.read_text() for pom in poms), resolve)


def _copy(artifact: str, folder: Path) -> None:
    """Have Maven download an artifact into a folder."""
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
    run_tool(
        [
            *["mvn", "-q", "-B", f"{plugin}:get", f"-Dartifact={artifact}"],
            "-Dtransitive=false",
        ],
        folder,
    )
    run_tool(
        [
            *["mvn", "-q", "-B", f"{plugin}:copy", f"-Dartifact={artifact}"],
            *[f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true"],
        ],
        folder,
    )


def downloaded(artifact: str) -> Path:
    """A file that Maven has, downloaded.

    Args:
        artifact: `group:name:version:type:classifier`.
    """

    def download(folder: Path) -> None:
        _copy(artifact, folder)

    (file,) = built("downloaded", [], artifact, download).iterdir()
    return file


def unpacked(artifact: str) -> Path:
    """The content of an archive that Maven has, downloaded.

    Args:
        artifact: `group:name:version:tar.gz:classifier`.
    """

    def unpack(folder: Path) -> None:
        _copy(artifact, folder)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()

    return built("unpacked", [], artifact, unpack)


def unpacked_file(archive: Path) -> Path:
    """The content of an archive that is in the tree."""

    def unpack(folder: Path) -> None:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")

    return built("unpacked", [archive], "", unpack)


def java_classes(sources: Path, jars: str) -> Path:
    """The jar of classes compiled from the Java files of a folder."""
    files = sorted(sources.glob("*.java"))

    def compile_all(folder: Path) -> None:
        classes = folder / "classes"
        flags = ["-nowarn", "-cp", jars, "-d", str(classes)]
        run_tool(["javac", *flags, *map(str, files)], sources)
        # A folder of classes is nothing that JVMs could share.
        packed = str(folder / "classes.jar")
        run_tool(["jar", "--create", "--file", packed, "-C", str(classes), "."], folder)
        shutil.rmtree(classes)

    return built("jar", files, jars, compile_all) / "classes.jar"


def go_program(sources: Path, go: str = "go") -> Path:
    """The binary of the Go module in a folder, built by that `go`."""
    files = [*sorted(sources.glob("*.go")), sources / "go.mod", sources / "go.sum"]

    def compile_it(folder: Path) -> None:
        target = str(folder / "program")
        flags = ["-buildvcs=false", *GO_FLAGS, "-ldflags=-s -w"]
        run_tool([go, "build", *flags, "-o", target, "."], sources)

    return built("go", files, "", compile_it) / "program"


def go_command(package: str, version: str, go: str) -> Path:
    """The binary of a command that the Go module proxy has, built by that `go`."""
    what = f"{package}@{version}"

    def install(folder: Path) -> None:
        into = {"GOBIN": str(folder)}
        run_tool([go, "install", what], folder, into, COMMAND_BUILD_SECONDS)

    (found,) = built("command", [], what, install).iterdir()
    return found


def rust_program(sources: Path, name: str) -> Path:
    """The binary of the Rust program in a folder, with what its lock file names.

    A lock file names the registry in each entry, as the machine's cargo calls it. In
    the tree it has no such name; one that cargo makes tells it.

    Raises:
        LookupError: There is no registry.
    """
    lock = sources / "Cargo.lock"

    def compile_it(folder: Path) -> None:
        copy = folder / "copy"
        shutil.copytree(sources, copy)
        made = copy / lock.name
        made.unlink()
        try:
            run_tool(["cargo", "generate-lockfile"], copy)
        except DownloadError as error:
            raise LookupError(f"no registry of crates is reached: {error}") from error
        (registry,) = set(re.findall(r'"(registry\+.*)"', made.read_text()))
        made.write_text(lock.read_text().replace('"registry"', f'"{registry}"'))
        run_tool(["cargo", "build", "--locked"], copy, seconds=COMMAND_BUILD_SECONDS)
        (copy / "target" / "debug" / name).rename(folder / name)
        # Of half a gigabyte.
        shutil.rmtree(copy)

    files = [*sorted((sources / "src").glob("*.rs")), sources / "Cargo.toml", lock]
    return built("rust", files, "", compile_it) / name


def node_modules(sources: Path) -> Path:
    """The folder of packages that a Node.js program's lock file names, downloaded."""
    files = [sources / "package.json", sources / "package-lock.json"]

    def install(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        run_tool(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    return built("node", files, "", install) / "node_modules"


def python_packages(requirements: Path, version: str = "", processor: str = "") -> Path:
    """The folder of exactly those packages that a file names, downloaded.

    Args:
        requirements: The file.
        version: Of the Python that they are for, unless it is this one.
        processor: With `version`: the one that they are for.
    """
    other = [f"--platform=manylinux_2_{glibc}_{processor}" for glibc in (17, 28, 36)]
    other += ["--only-binary=:all:", f"--python-version={version}"]
    given = ["-r", str(requirements), *(other if version else ())]

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
        run_tool([*pip, "--no-deps", "--target", str(folder), *given], folder)

    return built("python", [requirements], sys.version + version + processor, install)


def go_of(version: str) -> str:
    """The `go` command of at least a version, as `1.25.5`: installed, or downloaded.

    Debian 12 has 1.19, which does not know how to fetch a newer one for itself, as
    those from 1.21 do. But what they fetch is a module like others.

    Raises:
        LookupError: No Go is installed that could download a newer one.
        DownloadError: It could not.
    """
    if shutil.which("go") is None:
        raise LookupError("Go is not installed")
    asked = ["go", "env", "GOVERSION", "GOOS", "GOARCH"]
    said = subprocess.check_output(
        asked, text=True, cwd=Path(tempfile.gettempdir())
    ).split()
    if _numbers(said[0].removeprefix("go")) >= _numbers(version)[:2]:
        return "go"
    wanted = f"v0.0.1-go{version}.{said[1]}-{said[2]}"

    def download(folder: Path) -> None:
        run_tool(
            ["go", "mod", "download", f"golang.org/toolchain@{wanted}"],
            folder,
            {"GOMODCACHE": str(folder), "GOFLAGS": "-modcacherw"},
        )
        shutil.rmtree(folder / "cache")
        # Modules have no programs, so that Go has to say which files are some.
        for program in [*folder.glob("*/*/bin/*"), *folder.glob("*/*/pkg/tool/*/*")]:
            program.chmod(0o755)

    (found,) = built("toolchain", [], wanted, download).glob("*/*/bin/go")
    return str(found)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def c_program(source: Path, headers: Sequence[Path] = ()) -> Path:
    """The binary of one C file, and of the headers beside it that it includes."""

    def compile_it(folder: Path) -> None:
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
        target = str(folder / "program")
        run_tool(["gcc", *flags, "-o", target, str(source)], source.parent)

    return built("c", [source, *headers], "", compile_it) / "program"


def shared_object(source: Path) -> Path:
    """The library for LD_PRELOAD made of one C file."""

    def compile_it(folder: Path) -> None:
        target = str(folder / "library.so")
        run_tool(
            ["gcc", "-shared", "-fPIC", "-O2", "-o", target, str(source), "-ldl"],
            source.parent,
        )

    return built("c", [source], "", compile_it) / "library.so"


def extension(
    name: str, sources: Sequence[Path], headers: Sequence[Path], flags: Sequence[str]
) -> Path:
    """A compiled module for Python.

    Args:
        name: The last part of the module's.
        sources: C files of one folder.
        headers: Those that they include.
        flags: More for the compiler.
    """
    given = [*flags, f"-I{sysconfig.get_path('include')}"]

    def compile_it(folder: Path) -> None:
        target = str(folder / f"{name}.so")
        command = ["gcc", "-shared", "-fPIC", *given, "-o", target]
        run_tool([*command, *(source.name for source in sources)], sources[0].parent)

    settings = " ".join([name, sys.version, *given])
    found = built("extension", [*sources, *headers], settings, compile_it)
    return found / f"{name}.so"


@started_again
def built(
    kind: str, sources: Sequence[Path], settings: str, build: Callable[[Path], None]
) -> Path:
    """The folder that `build` has filled once for these sources and settings."""
    digest = hashlib.sha256(settings.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    target = cache() / "builds" / f"{kind}-{digest.hexdigest()[:20]}"
    if target.exists():
        # Whole, since it got its name last: nobody waits for what others build.
        return target
    with alone(target.parent):
        if not target.exists():
            folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{kind}-"))
            try:
                build(folder)
                folder.rename(target)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return target


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Build one thing in a folder at a time.

    Maven's own, which all builds share, is not made for two who write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_tool(
    arguments: list[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = BUILD_SECONDS,
) -> None:
    command = " ".join(arguments[:3])
    fetches = Path(arguments[0]).name in DOWNLOADING or arguments[0] == sys.executable
    failed = DownloadError if fetches else RuntimeError
    try:
        done = subprocess.run(
            arguments,
            cwd=directory,
            env={
                **os.environ,
                "JAVA_TOOL_OPTIONS": " ".join(LIGHT),
                **(environment or {}),
            },
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise failed(f"{command} took more than {seconds:g} s") from error
    if done.returncode:
        raise failed(f"{command}:\n{done.stdout}{done.stderr}")
