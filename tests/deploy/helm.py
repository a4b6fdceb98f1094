"""Helm, and what it makes of our chart."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import builds
from tests.starts import DownloadError

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "ropeway"
EXAMPLES = ROOT / "deploy" / "helm" / "examples"
HELM = "helm.sh/helm/v3/cmd/helm"
VERSION = "v3.22.0"
GO_NEEDED = "1.26.8"
KUBERNETES = "--kube-version=1.37.0"
"""What Helm takes a cluster for that it does not ask."""
SECONDS = 300
PULSAR = {
    "storage": "pulsar",
    "pulsar": {"serviceUrl": "pulsar://pulsar:6650", "adminUrl": "http://pulsar:8080"},
    "zookeeper": {"servers": "zk-0:2181,zk-1:2181"},
}
"""The least that `storage: pulsar` takes."""


Secrets = Mapping[str, Mapping[str, str]]
"""What Secrets have, by their names and keys."""


class HelmError(Exception):
    """Helm refused; the text says why."""


@functools.cache
def program() -> Path:
    """Helm's command, built once on a machine: three minutes of CPU.

    `scripts/setup test` does that before any test has to wait for it.
    """
    try:
        return builds.go_command(HELM, VERSION, builds.go_of(GO_NEEDED))
    except (LookupError, DownloadError) as error:
        pytest.skip(f"Helm could not be had: {error}", allow_module_level=True)


def helm(*arguments: object, values: Mapping[str, Any] | None = None) -> str:
    """What Helm prints.

    Args:
        arguments: Its command line.
        values: For the chart, over its own.

    Raises:
        HelmError: It failed.
    """
    done = subprocess.run(
        [program(), *map(str, arguments), *(["--values", "-"] if values else [])],
        check=False,
        capture_output=True,
        text=True,
        input=json.dumps(values),
        timeout=SECONDS,
    )
    if done.returncode:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


class Objects(list[dict[str, Any]]):
    """The objects that a release is made of."""

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Those of a kind, by name."""
        found = (one for one in self if one["kind"] == kind)
        return {one["metadata"]["name"]: one for one in found}

    @property
    def stateful_set(self) -> dict[str, Any]:
        """The only StatefulSet, or the first broker's."""
        return next(iter(self.of("StatefulSet").values()))

    @property
    def pod(self) -> dict[str, Any]:
        """What its pods are made of."""
        template: dict[str, Any] = self.stateful_set["spec"]["template"]
        return template

    @property
    def container(self) -> dict[str, Any]:
        """The container of each pod."""
        (found,) = self.pod["spec"]["containers"]
        container: dict[str, Any] = found
        return container

    @property
    def settings(self) -> str:
        """The nodes' ropeway.toml."""
        (found,) = (
            one["data"]["ropeway.toml"]
            for one in self.of("ConfigMap").values()
            if "ropeway.toml" in one["data"]
        )
        text: str = found
        return text


def documents(text: str) -> Objects:
    """The objects that YAML has."""
    loaded = yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Objects(one for one in loaded if one is not None)


def rendered(
    values: Mapping[str, Any] | None = None,
    *,
    name: str = "mq",
    namespace: str = "apps",
    chart: Path = CHART,
) -> Objects:
    """The objects of a release.

    Raises:
        HelmError: The chart refuses the values.
    """
    command = ("template", name, chart, "--namespace", namespace, KUBERNETES)
    return documents(helm(*command, values=values))


def notes(values: Mapping[str, Any], folder: Path) -> str:
    """What Helm tells who installs the chart, which it does only beside a cluster."""
    copy = folder / "chart"
    shutil.copytree(CHART, copy)
    told = copy / "templates" / "NOTES.txt"
    template = f'{{{{ define "notes" }}}}{told.read_text()}{{{{ end }}}}'
    told.with_name("_notes.tpl").write_text(template)
    told.with_name("notes.yaml").write_text(
        'kind: Notes\nmetadata: {name: mq}\ntext: {{ include "notes" . | quote }}\n'
    )
    told.unlink()
    text: str = rendered(values, chart=copy).of("Notes")["mq"]["text"]
    return text


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """A text in which Kubernetes has put variables in for $(NAME)."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], text)


def command_of(
    container: Mapping[str, Any], pod: str, secrets: Secrets | None = None
) -> tuple[list[str], dict[str, str]]:
    """A container's arguments and environment, as a pod of that name has them."""
    environment: dict[str, str] = {}
    for one in container["env"]:
        if "value" in one:
            value = expanded(one["value"], environment)
        elif "fieldRef" in one["valueFrom"]:
            value = pod
        else:
            asked = one["valueFrom"]["secretKeyRef"]
            value = (secrets or {}).get(asked["name"], {}).get(asked["key"], "")
        environment[one["name"]] = value
    arguments = [expanded(one, environment) for one in container.get("args", ())]
    return arguments, environment


if __name__ == "__main__":
    print(f"Helm: {program()}")
