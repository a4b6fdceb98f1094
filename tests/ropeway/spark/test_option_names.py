"""Names of options: each is known, and what others call so is told."""

from __future__ import annotations

import inspect
import re

import pytest

from ropeway.spark import credential_options, option_names, options
from ropeway.spark.options import read_options
from tests.pages import DOCS

GIVEN = {"nameServer": "127.0.0.1:9876", "topic": "orders, bills"}
COMING_FROM_KAFKA = re.compile(r"^\| (`.*`) \| (.*) \|$", re.MULTILINE)


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        ValueError, match="startingOffset is unknown; allowed: starting"
    ):
        read_options({**GIVEN, "startingOffset": "earliest"})
    with pytest.raises(
        ValueError, match="option zzz is unknown; allowed: nameServer, "
    ):
        read_options({**GIVEN, "zzz": "1"})
    # Spark hands these on to writers, and does not care for case.
    read_options({**GIVEN, "checkpointLocation": "/c", "FAILONDATALOSS": "false"})


def test_each_option_is_known_by_its_name() -> None:
    text = inspect.getsource(options)
    read = set(re.findall(r'given(?:\.get\(|,\s+)"(\w+)"', text))
    of_others = {"context", "nameServer", "tlsServerName", *credential_options.NAMES}
    assert set(option_names.NAMES) == read | of_others


def test_options_of_kafkas_source_are_told_their_name_here() -> None:
    page = (DOCS / "spark.md").read_text()
    section = page.partition("## Coming from Spark's Kafka")[2].partition("\n## ")[0]
    told = 0
    for theirs, here in COMING_FROM_KAFKA.findall(section):
        for name in re.findall(r"`([\w.*]+)`", theirs.replace("*", "any")):
            if name in option_names.NAMES or here.startswith("none"):
                continue
            with pytest.raises(ValueError, match=f"option {name} is unknown") as it:
                read_options({**GIVEN, name: "x"})
            near = re.search("allowed: (\\w+), or one of", str(it.value))
            assert near, name
            assert f"`{near[1]}`" in here, (name, here)
            told += 1
    assert told > 8
