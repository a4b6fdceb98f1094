"""A dry run of a release makes all of it, from the commit, and changes nothing."""

import hashlib
import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import builds, debian
from tests.starts import DownloadError

ROOT = Path(__file__).parents[2]
VERSION = "9.8.7"
TESTED = sys.executable
COMPILED = """
import ropeway.gateway.app
from ropeway.common.native import TABLES
for name, twins in sorted(TABLES.items()):
    print(name, "is whole:", all(compiled for _, compiled in twins.values()))
"""
ONE_WHEEL = """
import runpy
import sys
from pathlib import Path
names = runpy.run_path("scripts/release")
tree, dist = Path.cwd(), Path(sys.argv[1])
names["build_wheel"](names["build_sdist"](tree, dist), dist, sys.argv[2])
"""
MODULES = 5
TARGET, OTHER = "x86_64-linux-gnu.2.17", "aarch64-linux-gnu.2.17"


def git(tree: Path, *arguments: str) -> str:
    """What git prints."""
    return subprocess.check_output(["git", "-C", str(tree), *arguments], text=True)


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a tree with the tools that are pinned for it."""
    return _with_tools(tree, str(tree / "scripts" / "release"), *arguments)


def build_wheel(tree: Path, dist: Path, target: str) -> Path:
    """Have the command build a wheel for a system, and nothing else of a release."""
    dist.mkdir()
    done = _with_tools(tree, "-c", ONE_WHEEL, str(dist), target)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = dist.glob("*.whl")
    return wheel


def _with_tools(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    tools = builds.python_packages(ROOT / "requirements" / "release.txt")
    path = [str(tools / "bin"), *os.environ["PATH"].split(os.pathsep)]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
        # What it installs to try it out is tried once.
        env={
            **os.environ,
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": str(tools),
            "PIP_NO_COMPILE": "1",
            "CFLAGS": "-O0",
        },
    )


def pythons() -> dict[str, Path]:
    """The Pythons here that a wheel is for, by version; pyenv's are among them."""
    user = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    found = {}
    for python in [*filter(None, names), *user.glob("versions/*/bin/python"), TESTED]:
        asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, check=False, capture_output=True, text=True)
        version = done.stdout.strip()
        if re.fullmatch(r"3\.(1[1-9]|[2-9]\d)", version):
            found[version] = Path(python)
    return found


def try_out(wheel: Path, python: Path, folder: Path) -> str:
    """What a Python says that runs the demo from a wheel, and has compiled forms."""
    here = folder / "bin" / "python"
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", here, "install", "--no-deps"]
    pinned = ["--require-hashes", "-r", ROOT / "requirements" / "run.txt"]
    for what in (pinned, [wheel]):
        subprocess.run([*pip, "--quiet", "--no-compile", *what], check=True)
    return "".join(
        subprocess.check_output([here, "-P", *given], cwd=folder, text=True)
        for given in (["-m", "ropeway.gateway.cli.main", "demo"], ["-c", COMPILED])
    )


def of_arm() -> list[Path | str]:
    """A Python for another processor, which qemu imitates."""
    (emulator,) = debian.packages("bookworm", "qemu-user-static").glob(
        "usr/bin/qemu-aarch64-static"
    )
    needed = ("python3:arm64", "libstdc++6:arm64")
    system = debian.packages("bookworm", *needed)
    return [emulator, "-L", system, system / "usr/bin/python3.11"]


def of_sid() -> list[Path | str]:
    """A Python that is newer than any of this machine, with a C library of its own."""
    system = debian.packages("sid", "python3.14", "libstdc++6")
    libraries = system / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    return [loader, "--library-path", libraries, system / "usr/bin/python3.14"]


FOREIGN = {"aarch64": of_arm, "x86_64": of_sid}


def try_out_elsewhere(wheel: Path, processor: str, folder: Path) -> str:
    """What a Python says of the same that is not this machine's.

    Raises:
        DownloadError: There is none.
    """
    python = FOREIGN[processor]()
    version = str(python[-1]).rpartition("python")[2]
    requirements = ROOT / "requirements" / "run.txt"
    packages = builds.python_packages(requirements, version, processor)
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return "".join(
        subprocess.check_output(
            [*python, "-P", *given],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{packages}:{folder}"},
            text=True,
        )
        for given in (["-m", "ropeway.gateway.cli.main", "demo"], ["-c", COMPILED])
    )


def clone(tree: Path) -> Path:
    """A clone of the last commit, with what is changed of the command since."""
    subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
    shutil.copy(ROOT / "scripts" / "release", tree / "scripts" / "release")
    git(tree, "config", "user.name", "Ropeway")
    git(tree, "config", "user.email", "release@localhost")
    git(tree, "add", "scripts")
    git(tree, "commit", "-q", "--allow-empty", "-m", "as it is")
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return clone(tmp_path / "clone")


def check(said: str, where: str) -> None:
    """Check what a wheel has said, and print that it runs."""
    assert "received: 'hello from Ropeway'" in said, (where, said)
    assert said.count("is whole: True") == MODULES, (where, said)
    print(f"the wheel runs {where}")


@pytest.mark.slow
def test_a_dry_run_makes_all_of_a_release_and_changes_nothing(
    tree: Path, tmp_path: Path
) -> None:
    before = git(tree, "rev-parse", "HEAD") + git(tree, "tag")
    dist = tmp_path / "dist"
    targets = [f"--target={one}" for one in (TARGET, OTHER)]
    done = release(tree, VERSION, f"--dist={dist}", *targets)
    assert done.returncode == 0, done.stdout + done.stderr
    archive = dist / f"ropeway-{VERSION}.tar.gz"
    tag = "manylinux2014"
    wheels = {
        one: f"ropeway-{VERSION}-cp311-abi3-{tag}_{one}.manylinux_2_17_{one}.whl"
        for one in ("x86_64", "aarch64")
    }
    names = {"LICENCES.txt", "NOTES.md", "SHA256SUMS", "sbom.cdx.json", archive.name}
    names.update(wheels.values())
    assert {file.name for file in dist.iterdir()} == names
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    assert set(git(tree, "ls-files", "native").split()) <= packed
    components = json.loads((dist / "sbom.cdx.json").read_text())["components"]
    pinned = re.findall(
        r"^([\w-]+)==", (ROOT / "requirements/image.txt").read_text(), re.MULTILINE
    )
    found = {re.sub("[-_.]+", "-", one["name"]).lower() for one in components}
    assert set(pinned) - {"colorama"} <= found
    assert "==== msgspec-" in (dist / "LICENCES.txt").read_text()
    assert (dist / "NOTES.md").read_text().startswith("### Added")
    assert git(tree, "rev-parse", "HEAD") + git(tree, "tag") == before
    assert git(tree, "status", "--porcelain") == ""
    if platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc":
        for version, python in pythons().items():
            said = try_out(dist / wheels["x86_64"], python, tmp_path / version)
            check(said, f"on Python {version}")
        for processor, name in wheels.items():
            other = tmp_path / processor
            try:
                said = try_out_elsewhere(dist / name, processor, other)
            except DownloadError as error:
                print(f"the wheel for {processor} was not run elsewhere: {error}")
            else:
                check(said, f"for {processor} elsewhere")


def test_what_is_written_is_the_commit_that_was_built(
    tree: Path, tmp_path: Path
) -> None:
    built = tmp_path / "built"
    git(tree, "clone", "-q", str(tree), str(built))
    program = runpy.run_path(str(tree / "scripts" / "release"))
    program["prepare"](built, VERSION)
    program["bring"](built, VERSION, tree)
    assert git(tree, "rev-parse", "HEAD") == git(built, "rev-parse", "HEAD")
    assert git(tree, "rev-parse", f"v{VERSION}") == git(
        built, "rev-parse", f"v{VERSION}"
    )
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("version", "complaint"),
    [("1.x", "allowed: 1.2.3"), ("0.0.1", "the tag v0.0.1 is there already")],
)
def test_what_cannot_be_released_is_refused(
    version: str, complaint: str, tree: Path, tmp_path: Path
) -> None:
    git(tree, "tag", "v0.0.1")
    program = [sys.executable, tree / "scripts" / "release", version]
    done = subprocess.run(
        [*program, "--dist", tmp_path / "dist"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert complaint in done.stderr


def test_what_is_not_committed_is_not_released(tree: Path, tmp_path: Path) -> None:
    (tree / "NOTICE").write_text("changed")
    program = [sys.executable, tree / "scripts" / "release", VERSION]
    done = subprocess.run(
        [*program, "--dist", tmp_path / "dist"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "not committed" in done.stderr


def test_what_is_for_java_gets_the_version_too(tree: Path) -> None:
    runpy.run_path(str(tree / "scripts" / "release"))["prepare"](tree, VERSION)
    poms = {str(one.relative_to(tree)) for one in tree.glob("java/**/pom.xml")}
    changed = git(tree, "show", "--name-only", "--format=", "HEAD").split()
    assert poms
    assert poms | {"java/ropeway-junit/README.md"} <= set(changed)
    spring = (tree / "java" / "spring-tests" / "pom.xml").read_text()
    ours = r"<groupId>io.ropeway</groupId>\s+<artifactId>\S+\s+<version>(.*)</version>"
    assert re.findall(ours, spring) == [VERSION, VERSION]


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_the_headers_of_debians_python_are_found_for_each_processor(
    processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "usr" / "include"
    real = include / "x86_64-linux-gnu" / "python3.13" / "pyconfig.h"
    real.parent.mkdir(parents=True)
    real.write_text("")
    names = runpy.run_path(str(ROOT / "scripts" / "release"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(include / "python3.13"))
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: "x86_64-linux-gnu")
    flags = names["headers"](tmp_path, processor)
    found = Path(flags.removeprefix("-I"), f"{processor}-linux-gnu", *real.parts[-2:])
    assert found.resolve() == real
    real.unlink()
    assert names["headers"](tmp_path / "other", processor) == ""
