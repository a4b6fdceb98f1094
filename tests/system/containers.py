"""Real containers: docker-compose.yml in podman, on images that are made here."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests import builds
from tests.formats.earlier import earlier_version
from tests.system.deployment import ROOT, understood
from tests.waiting import until

IMAGES = Path(__file__).parent / "images"
COMPOSE = ROOT / "docker-compose.yml"
COMMAND_SECONDS = 900
STOP_SECONDS = 60
MOUNTED = ("/etc/apt/sources.list.d", "/etc/pip.conf")
"""Where packages come from on this machine, while an image is built."""
OURS = "localhost/ropeway-tests:latest"
_is_built: list[bool] = []
CERTIFICATES = Path("/etc/ssl/certs")
"""Whom this machine trusts. Java's package adds to it, so a build gets a copy."""
TRUSTED = "/trusted.crt"
"""The same in one file, where a container finds it."""
CONF = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
"""
"""Nothing that needs systemd or the right to raise a limit."""


PROGRAMS = ("podman", "buildah", "runc", "debootstrap", "debugfs", "qemu-img")
"""What Debian's packages bring that `scripts/setup test` installs."""


def composer() -> list[str]:
    """The command podman-compose, installed."""
    packages = builds.python_packages(IMAGES / "requirements.txt")
    named = f"PYTHONPATH={packages}"
    return ["env", named, sys.executable, "-m", "podman_compose"]


def base() -> str:
    """The image that ours is made from."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (first,) = (one.split()[1] for one in lines if one.startswith("FROM python:"))
    return f"docker.io/library/{first}"


def missing() -> str | None:
    """What this machine lacks for containers; None where that is nothing."""
    if os.geteuid():
        return "containers with published ports and volumes are started as root here"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"there is no {program}; scripts/setup test installs it on Debian"
    return None


class Containers:
    """docker-compose.yml, with containers that are called `ropeway_SERVICE_1`.

    Args:
        directory: For podman's settings and for certificates.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        conf = directory / "containers.conf"
        conf.write_text(CONF)
        self._environment = {**os.environ, "CONTAINERS_CONF": str(conf)}

    def run(self, *command: str, check: bool = True) -> str:
        """What a command says; its errors are in the exception's text."""
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def compose(self, *command: str) -> str:
        """Run Compose on docker-compose.yml."""
        return self.run(*composer(), "--file", str(COMPOSE), *command)

    def inspect(self, service: str) -> Any:
        """All that podman knows of a service's container."""
        return json.loads(self.run("podman", "inspect", name(service)))[0]

    def image_mb(self, service: str) -> float:
        """What a service's image adds to `base()`."""

        def size(image: str) -> int:
            found = self.run("podman", "image", "inspect", "-f", "{{.Size}}", image)
            return int(found)

        return (size(self.inspect(service)["Image"]) - size(base())) / 1e6

    def inside(self, service: str, *command: str, check: bool = True) -> str:
        """What a command says that is run in a service's container."""
        return self.run("podman", "exec", name(service), *command, check=check)

    def healthy(self, service: str) -> bool:
        """Whether a service's own health check passes now."""
        with suppress(AssertionError):
            self.run("podman", "healthcheck", "run", name(service))
            return True
        return False

    def _mounts(self) -> list[str]:
        """This machine's sources of packages, and whom it trusts, as options."""
        trusted = Path(tempfile.mkdtemp(dir=self._directory)) / "certificates"
        shutil.copytree(CERTIFICATES, trusted, ignore_dangling_symlinks=True)
        mounts = [f"--volume={one}:{one}:ro" for one in MOUNTED if Path(one).exists()]
        return [*mounts, f"--volume={trusted}:{CERTIFICATES}"]

    def once(self, image: str, command: Sequence[str], *volumes: str) -> str:
        """What a command says in a container that is gone afterwards.

        Args:
            image: What it begins with; packages come from where they do here.
            command: The command.
            volumes: As podman has them.
        """
        # Packages may make the container's own anew, without those of this machine.
        trusted = Path(CERTIFICATES / "ca-certificates.crt").resolve()
        given = [*self._mounts(), f"--volume={trusted}:{TRUSTED}:ro"]
        given += [f"--volume={one}" for one in volumes]
        given += [f"--env={name}={TRUSTED}" for name in ("PIP_CERT", "SSL_CERT_FILE")]
        return self.run("podman", "run", "--rm", "--init", *given, image, *command)

    @contextmanager
    def socket(self, path: Path) -> Iterator[str]:
        """Serve Docker's API on a Unix socket; its URL."""
        url = f"unix://{path}"
        command = ["podman", "system", "service", "--time=0", url]
        service = subprocess.Popen(command, env=self._environment)
        try:
            until(path.exists, STOP_SECONDS)
            yield url
        finally:
            service.terminate()
            service.wait(STOP_SECONDS)

    def build(self, tag: str, folder: Path, file: Path, **arguments: str) -> None:
        """Build an image with this machine's sources of packages."""
        mounts = self._mounts()
        given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        where = ["--isolation=chroot", "--network=host"]
        what = [f"--tag={tag}", f"--file={file}", str(folder)]
        with self._replacing(tag):
            self.run("buildah", "bud", *where, *mounts, *given, *what)

    def build_ours(self, *names: str) -> None:
        """Build the image of the Dockerfile, once in a process, and name it."""
        if not _is_built:
            self.build(OURS, ROOT, ROOT / "Dockerfile")
            _is_built.append(True)
        for name in names:
            self.tag(OURS, name)

    @contextmanager
    def _replacing(self, name: str) -> Iterator[None]:
        """Remove what had a name, if it has none now: it is half a gigabyte."""
        asked = ("podman", "image", "inspect", "--format")
        before = self.run(*asked, "{{.Id}}", name, check=False)
        yield
        if before and self.run(*asked, "{{.RepoTags}}", before, check=False) == "[]":
            self.run("podman", "rmi", before, check=False)

    def tag(self, image: str, name: str) -> None:
        """Give an image another name."""
        with self._replacing(name):
            self.run("podman", "tag", image, name)

    def build_earlier(self, tag: str, image: str) -> None:
        """Make an image of `image` that runs the earlier version that is kept."""
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            shutil.copytree(earlier_version(), folder / "earlier", symlinks=True)
            self.build(tag, folder, IMAGES / "earlier.Dockerfile", BASE=image)

    def replace(self, service: str) -> None:
        """Have a service run what its image's name means now, as an upgrade does.

        Docker's Compose sees by itself that an image is another; podman's is told to.
        """
        options = ("--detach", "--no-deps", "--force-recreate")
        self.compose("up", *options, service)

    @contextmanager
    def up(self) -> Iterator[None]:
        """Run all of it, and leave nothing of it but the images."""
        services = list(understood("compose", COMPOSE)["services"])
        try:
            self.compose("up", "--detach")
            yield
        finally:
            # Volumes without a name are left by what Compose does.
            names = map(name, services)
            self.run("podman", "rm", "--force", "--volumes", *names, check=False)
            self.compose("down", "--volumes")


def name(service: str) -> str:
    """What a service's container is called."""
    return f"ropeway_{service}_1"
