"""Which processor works on which request, and what is known of each."""

from __future__ import annotations

import pytest

import ropeway.gateway.processors.all  # noqa: F401 - registers every processor
from ropeway.gateway.processors import registry
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.processors.needs import KNOWN
from ropeway.gateway.processors.unsupported import REASONS
from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from ropeway.gateway.wire.header import ROWS


def test_every_declared_request_is_handled_or_listed_with_a_reason():
    assert set(ROWS) == set(registry.PROCESSORS) | set(REASONS) & set(ROWS)
    assert not set(registry.PROCESSORS) & set(REASONS)


@pytest.mark.rule(
    "processors.md", "Declaring or handling a code twice fails at import."
)
def test_a_second_processor_of_a_command_is_a_mistake():
    with pytest.raises(ValueError, match="GET_MAX_OFFSET has two processors"):
        registry.handles(GetMaxOffset, KNOWN)(lambda *_: Answer())
