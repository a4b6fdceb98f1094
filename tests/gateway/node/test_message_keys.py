"""What compaction reads of stored messages, and who is refused."""

from __future__ import annotations

import pytest

from gateway.node.message_keys import MessageKeys, MissingKeyError, check
from gateway.wire import describing
from storage import compacting


@pytest.mark.parametrize("pairs", [{}, {"KEYS": ""}, {"KEYS": " "}, {"TAGS": "a"}])
def test_a_message_without_a_key_is_refused_in_rocketmqs_words(
    pairs: dict[str, str],
) -> None:
    with pytest.raises(MissingKeyError, match=r"^Required message key is missing$"):
        check(pairs)
    check({**pairs, "KEYS": "a b"})


def test_rows_are_what_the_log_asks_for() -> None:
    assert describing.ROW.format == compacting.ROW.format
    assert describing.KEYED == compacting.KEYED
    assert describing.TOMBSTONE == compacting.TOMBSTONE
    assert MessageKeys().rows(b"") == b""
