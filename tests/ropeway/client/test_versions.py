"""Version numbers in words, as the enum MQVersion of RocketMQ 5.5.0 has them."""

import pytest

from ropeway.client.versions import version_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (213, "4.0.0"),
        (399, "4.9.3"),
        (409, "4.9.8"),
        (412, "5.0.0-SNAPSHOT"),
        (453, "5.2.0"),
        (513, "5.5.0"),
        (15, "15"),
    ],
)
def test_a_version_is_told_in_words(number, text):
    assert version_text(number) == text
