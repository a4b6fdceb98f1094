"""A node that leads its broker no more takes no partition over."""

from __future__ import annotations

import asyncio
import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import ownership
from ropeway.storage.pulsar.entry_reader import unavailable
from ropeway.storage.pulsar.errors import PulsarError
from ropeway.storage.pulsar.open_partition import ContestedError
from ropeway.storage.state import never
from tests.remoting import looped, until
from tests.storage.pulsar.test_ownership import Rig, is_open, partition_of

if TYPE_CHECKING:
    from ropeway.storage.pulsar.open_partition import Opened
    from ropeway.storage.pulsar.partition import PulsarPartition


class Asking(Rig):
    """One that asks, as a producer does, whether it may be opened."""

    async def open_partition(
        self, cluster: Any, partition: PulsarPartition, *rest: Any
    ) -> Opened:
        try:
            rest[-2]()
        except PulsarError as error:
            raise unavailable(partition, error) from error
        return await super().open_partition(cluster, partition, *rest)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Asking()
    monkeypatch.setattr(ownership, "open_partition", made.open_partition)
    monkeypatch.setattr(ownership, "open_followed", made.open_followed)
    return made


@looped
async def test_who_leads_no_more_tries_no_more(rig):
    """It would take the partition from the node that leads now."""
    state = SimpleNamespace(leading=True, held_until_s=math.inf)
    rig.own.share(state, never)

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
async def test_nothing_is_taken_over_while_another_node_may_lead(rig):
    """Who was deposed, and has not heard of it, is not sure of leading, either."""
    now_s = time.monotonic()
    for lease_s, routes_s, is_sure in ((-1, -1, False), (60, -1, True), (-1, 60, True)):
        state = SimpleNamespace(leading=True, held_until_s=now_s + lease_s)
        rig.own.share(state, lambda held_s=now_s + routes_s: held_s)
        partition = partition_of()
        if not is_sure:
            with pytest.raises(LogUnavailableError, match="another node may lead"):
                await rig.own.open([partition])
        else:
            await rig.own.open([partition])
        assert is_open(partition) == is_sure
    assert len(rig.asked) == 2


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
