"""Names are the field's: modules are called what they are, and the glossary holds."""

import re
import tokenize
from io import StringIO
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
    "running": "ConsumerRunningInfo is RocketMQ's name",
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


RETIRED_NAMES = RETIRED - {"late", "lines", "returns", "seal", "taking", "turns"}
"""Those that variables and attributes have none of either; the others mean what they
say somewhere: a segment is sealed, a turn is taken."""


def test_variables_and_attributes_have_the_words_of_the_field() -> None:
    # Comments and texts may have them, which takes long to tell apart.
    anywhere = re.compile(rf"\b_*(?:{'|'.join(RETIRED_NAMES)})\b")
    for name in sources():
        source = (ROOT / name).read_text()
        if not anywhere.search(source):
            continue
        text = StringIO(source)
        words = {
            word.string.lstrip("_")
            for word in tokenize.generate_tokens(text.readline)
            if word.type == tokenize.NAME
        }
        assert not words & RETIRED_NAMES, name


def test_the_glossary_names_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture" / "README.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| `([\w/.]+)` \|$", page, re.MULTILINE)
    assert len(rows) > 10
    assert [path for path in rows if not (ROOT / path).exists()] == []
