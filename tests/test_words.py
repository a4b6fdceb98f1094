"""Names are the field's: modules are called what they are, and the glossary holds."""

import re
from pathlib import PurePath

from tests.test_laws import ROOT, sources

PARTICIPLES = {
    "framing": "gRPC's word for messages on a stream",
    "listing": "object stores' word",
    "paging": "the word for pages of lists",
    "polling": "long polling is RocketMQ's word",
    "queueing": "fair queueing is networks' word",
    "auditing": "the word for audit lines",
    "throttling": "the word for limits by quota",
    "messaging": "RocketMQ's gRPC service is called MessagingService",
    "pending": "an adjective",
    "testing": "what Python's packages call helpers of tests",
}
"""What a part of a module's name may be that ends in -ing, and why."""

RETIRED = {
    *("arriving", "giving", "handouts", "late", "lines", "patience", "returns"),
    *("seal", "shelf", "steady", "taking", "turns", "way_in"),
}
"""Words of our own that the field has others for."""


def test_modules_are_named_by_nouns_of_the_field() -> None:
    names = [PurePath(name).stem for name in sources()]
    participles = {
        part for name in names for part in name.split("_") if part.endswith("ing")
    }
    assert participles == set(PARTICIPLES)
    assert not RETIRED.intersection(names)


def test_the_glossary_names_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture" / "README.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| `([\w/.]+)` \|$", page, re.MULTILINE)
    assert len(rows) > 10
    assert [path for path in rows if not (ROOT / path).exists()] == []
