"""Every operator has its place on Spark, and the docs say the same."""

from __future__ import annotations

import re
from pathlib import Path

from ropeway.streams.nodes import ENDS, Operator
from ropeway.streams.spark_plan import MAPPING, ONTO

DOCS = Path(__file__).parents[3] / "docs/streams.md"


def test_every_operator_is_laid_out() -> None:
    assert set(ONTO) == set(Operator)
    assert MAPPING.keys() | ENDS == set(Operator)


def test_the_docs_have_the_same_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCS.read_text(), re.MULTILINE)
    assert dict(rows) == {one.value: text for one, text in ONTO.items()}
