"""A pod of the chart, without Kubernetes: what the kubelet makes of it, by namespaces.

The container has a root of its own that nobody can write, the pod's volumes, its user
without capabilities, and a network in which a Service has an address that lasts.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.deploy.helm import ROOT, Objects, Secrets, command_of
from tests.system.process import ServerProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVICES = {"mq-ropeway": "10.96.0.10", "mq-ropeway-broker-0-0": "10.96.0.11"}
"""Addresses of Services: Kubernetes gives them once."""
BIN = Path(sys.executable).parent
SETUP = """\
set -eu
ip link set lo up
for address in $ADDRESSES; do ip address add "$address/32" dev lo; done
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$NEW"
for entry in /*; do
    case $entry in
        /data | /etc | /home | /root | /tmp) ;;
        *) if [ -L "$entry" ]; then
            cp -P "$entry" "$NEW$entry"
        elif [ -d "$entry" ]; then
            mkdir "$NEW$entry"
            mount --rbind "$entry" "$NEW$entry"
            [ "$entry" = /proc ] || mount -o remount,bind,ro "$NEW$entry" || true
        fi ;;
    esac
done
mkdir -p "$NEW/etc" "$NEW/tmp" "$NEW/data"
mount --bind "$VOLUMES/etc" "$NEW/etc"
mount -o remount,bind,ro "$NEW/etc"
mount --bind "$VOLUMES/tmp" "$NEW/tmp"
mount --bind "$VOLUMES/data" "$NEW/data"
for kept in $KEPT; do
    if [ ! -e "$NEW$kept/." ]; then
        mkdir -p "$NEW$kept"
        mount --bind "$kept" "$NEW$kept"
    fi
done
mount -o remount,ro "$NEW"
exec chroot "$NEW" "$@"
"""
"""What the kubelet and the container's runtime do before they start its program."""


def _without_rights(user: int, group: int) -> list[str]:
    """What gives up all rights and becomes a user of that number."""
    ids = [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    return ["setpriv", "--bounding-set=-all", "--no-new-privs", *ids, "--"]


@functools.cache
def lacking() -> str | None:
    """What keeps pods from being started here; None where nothing does."""
    if os.geteuid():
        return "only root makes namespaces for a pod"
    for program in ("ip", "unshare", "nsenter", "setpriv"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    made = ["unshare", "--mount", "--net", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if subprocess.run(made, check=False, capture_output=True).returncode:
        return "nothing can be mounted here"
    return None


class Pod:
    """A pod of a release's first StatefulSet.

    Args:
        objects: The release.
        folder: For the pod's volumes; `data` in it outlives the pod.
        address: The pod's own.
        secrets: Those of its namespace.
    """

    def __init__(
        self,
        objects: Objects,
        folder: Path,
        address: str,
        secrets: Secrets | None = None,
    ) -> None:
        self._objects = objects
        self._folder = folder
        self.address = address
        self.name = next(iter(objects.of("StatefulSet"))) + "-0"
        container, spec = objects.container, objects.pod["spec"]
        self._secrets = secrets or {}
        self.arguments, self.environment = command_of(container, self.name, secrets)
        self.grace_s: int = spec["terminationGracePeriodSeconds"]
        who = spec["securityContext"]
        self._user, self._group = who["runAsUser"], who["runAsGroup"]
        self._process: ServerProcess | None = None
        assert container["securityContext"]["readOnlyRootFilesystem"] is True

    def start(self) -> None:
        """Start it, and wait until its readiness probe passes."""
        self._make_volumes()
        new = self._folder / "root"
        new.mkdir(exist_ok=True)
        script = self._folder / "setup.sh"
        script.write_text(SETUP)
        user = _without_rights(self._user, self._group)
        self._process = ServerProcess(
            f"pod-{self.address}",
            [
                *("unshare", "--mount", "--net", "sh", str(script)),
                *(*user, str(BIN / "ropeway"), *self.arguments),
            ],
            self._folder,
            {
                **self._environment(),
                "ADDRESSES": " ".join([*SERVICES.values(), self.address]),
                "KEPT": f"{ROOT} {sys.prefix} {sys.base_prefix}",
                "NEW": str(new),
                "VOLUMES": str(self._folder),
            },
        )
        self._process.wait_until(lambda: "health at" in self.log())
        until(lambda: self.passes("readinessProbe"))

    def log(self) -> str:
        """The end of what its process has written."""
        assert self._process is not None
        return self._process.tail()

    def _environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        path = f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return {**self.environment, **(more or {}), "PATH": path, "HOME": "/data"}

    def _make_volumes(self) -> None:
        etc = self._folder / "etc"
        shutil.rmtree(etc, ignore_errors=True)
        shutil.copytree("/etc", etc, symlinks=True)
        (etc / "hosts").write_text(
            f"127.0.0.1 localhost\n{self.address} {self.name}\n"
            + "".join(
                f"{address} {name}.apps.svc.cluster.local\n"
                for name, address in SERVICES.items()
            )
        )
        config = etc / "ropeway" / "config"
        config.mkdir(parents=True)
        (config / "ropeway.toml").write_text(self._objects.settings)
        for volume in self._objects.pod["spec"]["volumes"]:
            if "secret" in volume:
                self._mount(volume["secret"], etc / "ropeway" / volume["name"])
        shutil.rmtree(self._folder / "tmp", ignore_errors=True)
        for volume in ("data", "tmp"):
            made = self._folder / volume
            made.mkdir(exist_ok=True)
            # As fsGroup has it.
            os.chown(made, 0, self._group)
            made.chmod(0o2775)

    def _mount(self, volume: Mapping[str, Any], directory: Path) -> None:
        """Have a Secret's keys as files, as the kubelet does: by symbolic links."""
        now = directory / "..now"
        now.mkdir(parents=True)
        (directory / "..data").symlink_to("..now")
        for key, value in self._secrets[volume["secretName"]].items():
            file = now / key
            file.write_text(value)
            os.chown(file, 0, self._group)
            file.chmod(volume["defaultMode"])
            (directory / key).symlink_to(f"..data/{key}")

    def run(
        self,
        *command: str,
        environment: Mapping[str, str] | None = None,
        code: int = 0,
    ) -> str:
        """What a command says in the container, as by `kubectl exec`."""
        assert self._process is not None
        into = [f"--target={self._process.pid}", "--mount", "--net", "--root", "--wd"]
        done = subprocess.run(
            ["nsenter", *into, *_without_rights(self._user, self._group), *command],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment(environment),
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def passes(self, probe: str) -> bool:
        """Whether a probe passes, which the kubelet asks by the pod's address."""
        asked = self._objects.container[probe]["httpGet"]
        (port,) = (
            one["containerPort"]
            for one in self._objects.container["ports"]
            if one["name"] == asked["port"]
        )
        url = f"{asked['scheme'].lower()}://{self.address}:{port}{asked['path']}"
        asking = f"import urllib.request; urllib.request.urlopen({url!r}, timeout=60)"
        with contextlib.suppress(AssertionError):
            self.run(str(BIN / "python"), "-c", asking)
            return True
        return False

    def status(self) -> str:
        """What the kernel says of the container's process."""
        assert self._process is not None
        return Path(f"/proc/{self._process.pid}/status").read_text()

    def stop(self) -> None:
        """End it as the kubelet does; it ends in its grace period, and well."""
        assert self._process is not None
        process = self._process._process
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(self.grace_s) == 0, self._process.tail()
        finally:
            self.kill()

    def kill(self) -> None:
        """End it without warning, wherever it is."""
        if self._process is not None:
            self._process.kill()


def release_test(
    objects: Objects, secrets: Secrets | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command line of the release's test, and its environment."""
    (pod,) = objects.of("Pod").values()
    (container,) = pod["spec"]["containers"]
    _, environment = command_of(container, pod["metadata"]["name"], secrets)
    return container["command"], environment


@contextlib.contextmanager
def running(pod: Pod) -> Iterator[Pod]:
    """Have a pod run as long as the block lasts."""
    try:
        pod.start()
        yield pod
    finally:
        pod.kill()
