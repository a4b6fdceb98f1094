"""Topics that are to be created at the start, as the configuration names them."""

import re

import pytest

from ropeway.gateway.config import ConfigError
from ropeway.gateway.config_file import read


def test_topics_are_named_with_their_queues():
    config = read({"topics": {"create": {"orders": 3, "a-%|b_1": 1024}}})
    assert config.topics.create == {"orders": 3, "a-%|b_1": 1024}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"topics": {"create": 5}}, "topics.create is 5; allowed: a table"),
        (
            {"topics": {"create": {"orders": 0}}},
            "topics.create.orders is 0; allowed: a whole number from 1 to 1024",
        ),
        (
            {"topics": {"create": {"a b": 8}}},
            "topics.create is 'a b'; allowed: 1 to 127 of a-z, A-Z, 0-9, _, -, % and |",
        ),
    ],
)
def test_what_cannot_be_created_is_said(settings, complaint):
    with pytest.raises(ConfigError, match=f"^{re.escape(complaint)}$"):
        read(settings)
