"""What compaction reads of stored messages, and who is refused."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.message_keys import MessageKeys, MissingKeyError, check
from ropeway.gateway.wire import compaction_rows
from ropeway.storage import compaction_api


@pytest.mark.parametrize("pairs", [{}, {"KEYS": ""}, {"KEYS": " "}, {"TAGS": "a"}])
def test_a_message_without_a_key_is_refused_in_rocketmqs_words(
    pairs: dict[str, str],
) -> None:
    with pytest.raises(MissingKeyError, match=r"^Required message key is missing$"):
        check(pairs)
    check({**pairs, "KEYS": "a b"})


def test_rows_are_what_the_log_asks_for() -> None:
    assert compaction_rows.ROW.format == compaction_api.ROW.format
    assert compaction_rows.KEYED == compaction_api.KEYED
    assert compaction_rows.TOMBSTONE == compaction_api.TOMBSTONE
    assert MessageKeys().rows(b"") == b""
