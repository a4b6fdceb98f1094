"""A node that leads its broker no more takes no partition over."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import ownership
from ropeway.storage.pulsar.open_partition import ContestedError
from tests.remoting import looped, until
from tests.storage.pulsar.test_ownership import Rig, is_open, partition_of

if TYPE_CHECKING:
    from ropeway.storage.pulsar.partition import PulsarPartition


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig()
    monkeypatch.setattr(ownership, "open_partition", made.open_partition)
    monkeypatch.setattr(ownership, "open_followed", made.open_followed)
    return made


@looped
async def test_who_leads_no_more_tries_no_more(rig):
    """It would take the partition from the node that leads now."""
    state = SimpleNamespace(leading=True)
    rig.own.state = state

    def contest(_: PulsarPartition, before: int) -> None:
        state.leading = not before
        raise ContestedError("theirs")

    rig.meanwhile = contest
    partition = partition_of()
    with pytest.raises(LogUnavailableError, match="this node leads no more"):
        await rig.own.open([partition])
    assert len(rig.asked) == 2
    with pytest.raises(LogUnavailableError, match="this node leads no more"):
        await rig.own.open([partition])
    assert len(rig.asked) == 2
    # It may read what the other one stores.
    rig.own.follows, rig.meanwhile = True, lambda *_: None
    await rig.own.open([partition])
    assert is_open(partition)


@looped
async def test_what_is_being_opened_when_this_node_is_deposed_is_given_up(rig):
    reasons = []
    rig.gate.clear()
    opening = asyncio.ensure_future(rig.own.open([partition_of()]))
    await until(lambda: rig.asked)
    rig.own.telling(reasons.append)("another node leads")
    with pytest.raises(LogUnavailableError, match="not opened any more"):
        await opening
    assert reasons == ["another node leads"]
    assert rig.producers == []
