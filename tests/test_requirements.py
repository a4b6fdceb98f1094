"""The pins in requirements/ are what pyproject.toml asks for; its bounds are true."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests import builds
from tests.chance import TIERS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {
    "": TABLES["project"]["dependencies"],
    **TABLES["project"]["optional-dependencies"],
    **TABLES["dependency-groups"],
}
OF_IMAGE = ["", "acl", "grpc", "pulsar", "tier", "zookeeper"]
FILES = {
    "dev.txt": ["", *TABLES["project"]["optional-dependencies"]],
    "image.txt": OF_IMAGE,
    "oldest.txt": [*OF_IMAGE, "otlp"],
    "release.txt": ["release"],
    "run.txt": [""],
}
"""What each file is made of."""
CORE = [
    "tests/acl/pulsar/test_keys.py",
    "tests/acl/test_vault.py",
    "tests/gateway/cli/test_topic.py",
    "tests/gateway/grpc/test_grpcio.py",
    "tests/gateway/http/test_health.py",
    "tests/gateway/node/sql/test_grammar.py",
    "tests/gateway/node/timer/test_index.py",
    "tests/gateway/test_config_file.py",
    "tests/gateway/wire/test_frame.py",
    "tests/ropeway/client/test_pull_consumer.py",
    "tests/storage/file/test_log.py",
    "tests/storage/pulsar/test_compression.py",
]
"""At least a test file for each package that Ropeway runs on."""
QUICK = " and ".join(f"not {tier}" for tier in TIERS)
"""No RocketMQ: what it answers is read by the same code as what a gateway does."""


def pins(name: str) -> dict[str, set[Version]]:
    """The versions that a file has of each package."""
    found: dict[str, set[Version]] = {}
    text = (FOLDER / name).read_text()
    for package, version in re.findall(r"^([\w.-]+)==([^ ;]+)", text, re.MULTILINE):
        found.setdefault(canonicalize_name(package), set()).add(Version(version))
    return found


def wanted(name: str) -> list[Requirement]:
    """What pyproject.toml asks for by the extras of a file."""
    return [Requirement(line) for extra in FILES[name] for line in EXTRAS[extra]]


def test_each_file_is_known() -> None:
    assert {file.name for file in FOLDER.iterdir()} == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_what_is_pinned_is_what_the_project_asks_for(name: str) -> None:
    pinned = pins(name)
    for one in wanted(name):
        versions = pinned[canonicalize_name(one.name)]
        assert all(one.specifier.contains(version) for version in versions), one


@pytest.mark.parametrize("name", FILES)
def test_each_pin_has_hashes_and_no_host(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert blocks
    for block in blocks:
        assert re.match(r"[\w.-]+==\S+", block), block
        assert "--hash=sha256:" in block, block


@pytest.mark.parametrize("name", ["run.txt", "image.txt"])
def test_what_runs_is_what_is_tested(name: str) -> None:
    tested = pins("dev.txt")
    assert {package: tested[package] for package in pins(name)} == pins(name)


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    pinned = pins("oldest.txt")
    bounds: dict[str, Version] = {}
    for one in wanted("oldest.txt"):
        name = canonicalize_name(one.name)
        for bound in one.specifier:
            if bound.operator == ">=":
                version = Version(bound.version)
                bounds[name] = max(version, bounds.get(name, version))
    # What others of them ask for can be newer than our own bound, and is then tried.
    assert {
        name: pinned[name]
        for name, bound in bounds.items()
        if bound not in pinned[name]
    } == {"protobuf": pinned["protobuf"]}


@pytest.mark.slow
def test_the_oldest_versions_work() -> None:
    packages = builds.python_packages(FOLDER / "oldest.txt")
    done = subprocess.run(
        [
            *[sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", QUICK],
            *["-p", "no:cacheprovider", *CORE],
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        # They stand before what is installed.
        env={**os.environ, "PYTHONPATH": str(packages)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
