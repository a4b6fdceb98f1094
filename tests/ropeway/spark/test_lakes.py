"""What formats of tables need of Spark."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from ropeway.spark.lakes import DELTA, lake_settings
from tests.pages import DOCS, ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCALA = "2.13"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


def test_delta_brings_its_build_and_settings() -> None:
    found = lake_settings("delta", {"a": "b"}, "4.2.1")
    assert found["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert found["spark.sql.extensions"] == EXTENSION
    assert found["a"] == "b"


def test_formats_of_spark_need_nothing() -> None:
    assert lake_settings("parquet", {"a": "b"}) == {"a": "b"}


def test_who_names_jars_is_believed() -> None:
    found = lake_settings("delta", {"spark.jars": "mine.jar"}, "9.9.0")
    assert "spark.jars.packages" not in found
    assert found["spark.sql.extensions"] == EXTENSION
    own = {"spark.sql.extensions": "Mine"}
    assert lake_settings("delta", own)["spark.sql.extensions"] == "Mine"
    jars = {"spark.jars": "mine.jar"}
    assert lake_settings("iceberg", jars, "9.9.0") == jars


@pytest.mark.parametrize(
    ("file_format", "version", "why"),
    [
        ("delta", "4.3.0", "is 4.3.0: Delta .* allowed: pip install 'pyspark==4.2.1'"),
        ("iceberg", "4.2.1", "is 4.2.1: Iceberg .* up to 4.1, .* allowed: delta"),
    ],
)
def test_a_spark_without_a_build_is_named(
    file_format: str, version: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        lake_settings(file_format, {}, version)


DEPENDENCY = re.compile(
    r"<dependency>\s+<groupId>(.+)</groupId>\s+<artifactId>(.+)</artifactId>\s+<version>(.+)</version>"
)
SYSTEM = ROOT / "tests" / "system"


def pinned(file: Path) -> str:
    """The release of PySpark that a file of requirements pins."""
    found = re.search(r"^pyspark==(\S+)", file.read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_pages_name_the_builds_and_releases_that_tests_run() -> None:
    jars = (SYSTEM / "lakes.xml").read_text()
    tested = {":".join(found) for found in DEPENDENCY.findall(jars)}
    assert set(DELTA.values()) <= tested
    releases = {
        pinned(SYSTEM / "lakes.txt"),
        pinned(ROOT / "requirements" / "dev.txt"),
    }
    coordinate = rf"`((?:[\w.-]+):(?:[\w.-]+_{SCALA}):(?:[\w.]+))`"
    text = "".join(page.read_text() for page in sorted(DOCS.rglob("*.md")))
    named = set(re.findall(coordinate, text))
    assert named == tested
    assert set(re.findall(r"pyspark==([\w.]+)", text)) <= releases
    assert {build.split(":")[2] for build in DELTA.values()} == set(
        re.findall(r"^\| Delta \| ([\w.]+) \|", text, re.MULTILINE)
    )
    said = re.search(r"# PySpark (\S+) or (\S+),", text)
    assert said
    assert all(
        any(one.startswith(start) for one in releases) for start in said.groups()
    )
    assert len(releases) == len(said.groups())


def test_extras_that_pages_name_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    named = {
        extra
        for page in pages
        for found in re.findall(r"ropeway\[([\w,-]+)\]", page.read_text())
        for extra in found.split(",")
    }
    assert "spark" in named
    assert named <= project["project"]["optional-dependencies"].keys()
