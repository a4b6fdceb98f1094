"""Runs the tests of the Maven projects under java/, once for a run of pytest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import builds, jvm

if TYPE_CHECKING:
    from collections.abc import Mapping

JAVA = Path(__file__).parents[2] / "java"
PROJECTS = ("ropeway-junit", "spring-tests")
IN_CONTAINERS = "container-tests"
"""The project of which `run_in_containers` runs the tests."""
RUN_SECONDS = 1500
"""It takes a fortieth of that on a quiet machine."""

_TEST = re.compile(r"^    @Test\n    void (\w+)\(", re.MULTILINE)
Name = tuple[str, str]
"""A test's class and method."""


def written() -> list[Name]:
    """The tests that the projects' sources have."""
    return [
        (file.stem, found)
        for project in PROJECTS
        for file in sorted((JAVA / project).rglob("*Test.java"))
        for found in _TEST.findall(file.read_text())
    ]


@dataclass(frozen=True)
class Reports:
    """What came of a run."""

    failures: dict[Name, str]
    """By test; empty where it passed."""
    output: str


def run(directory: Path) -> Reports:
    """Run all tests in a copy of the projects.

    Args:
        directory: For the copy, which Maven builds in.
    """
    poms = [JAVA / one / "pom.xml" for one in ("", *PROJECTS)]
    builds.maven_artifacts(JAVA, poms, "RopewayCommandTest,InboxTest")
    command = str(Path(sysconfig.get_path("scripts")) / "ropeway")
    return _tested(directory, ["-fae", "test"], {"ROPEWAY_COMMAND": command})


def run_in_containers(directory: Path, docker: str) -> Reports:
    """Run the tests that start containers in a copy of the projects.

    Args:
        directory: For the copy, which Maven builds in.
        docker: The URL of Docker's socket; it is not asked for Testcontainers' own
            container, which would remove others where the JVM cannot.
    """
    return _tested(
        directory,
        [
            *["-P", "containers", "-pl", IN_CONTAINERS, "-am", "test"],
            *["-Dtest=ContainerTest", "-Dsurefire.failIfNoSpecifiedTests=false"],
        ],
        {
            "DOCKER_HOST": docker,
            "TESTCONTAINERS_RYUK_DISABLED": "true",
            "TESTCONTAINERS_CHECKS_DISABLE": "true",
        },
    )


def _tested(directory: Path, goals: list[str], more: Mapping[str, str]) -> Reports:
    copy = directory / "java"
    shutil.copytree(JAVA, copy)
    done = subprocess.run(
        ["mvn", "-B", "-q", "-f", str(copy), *goals],
        check=False,
        env={
            **os.environ,
            "JAVA_TOOL_OPTIONS": " ".join([*builds.LIGHT, *jvm.options()]),
            **more,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )
    failures = {
        (case.attrib["classname"].rpartition(".")[2], case.attrib["name"]): "\n".join(
            found.text or found.tag for found in case if found.tag in _FAILED
        )
        for report in copy.glob("*/target/surefire-reports/TEST-*.xml")
        for case in ET.parse(report).getroot().iter("testcase")
    }
    return Reports(failures, done.stdout)


_FAILED = ("failure", "error", "skipped")
