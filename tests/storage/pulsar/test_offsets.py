"""Offsets as facts of a broker's state: keys, the contract, followers, a lost lead."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.offsets import PulsarOffsets, decode_key, encode_key
from ropeway.storage.pulsar.state import state_topic
from tests.contracts.offsets import OffsetsContract
from tests.contracts.state import until
from tests.storage.pulsar.states import Cluster, cluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.pulsar.state import PulsarState
    from tests.system.pulsar import Pulsar

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
server = pytest.mark.server
jvm = pytest.mark.jvm


@given(names, names, st.integers(0, 1 << 31))
def test_keys_come_back(group: str, topic: str, queue_id: int) -> None:
    assert decode_key(encode_key(group, topic, queue_id)) == (group, topic, queue_id)


def test_a_key_is_readable_and_sorts_by_group_and_topic() -> None:
    assert encode_key("g", "%RETRY%a|b%g", 7) == "offset/g/%25RETRY%25a%7Cb%25g/7"
    rows = [("a", "b/c", 1), ("a", "x", 0), ("a/b", "c", 2), ("ab", "c", 3)]
    assert sorted(rows, key=lambda row: encode_key(*row)[:-1].split("/")) == rows


@pytest.mark.parametrize(
    "key", ["", "offset/", "offset/g/t", "offset/g/t/x", "offset/g/t/1/2", "lock/g/t/1"]
)
def test_other_keys_are_no_offsets(key: str) -> None:
    assert decode_key(key) is None


class Owner(PulsarOffsets):
    """Offsets with a Pulsar client and a state of their own."""

    def __init__(self, one: Cluster, state: PulsarState) -> None:
        super().__init__(state)
        self._one = one
        self._own = state

    async def close(self) -> None:
        await super().close()
        await self._own.close()
        await self._one.close()


@server
@jvm
class TestPulsarOffsets(OffsetsContract):
    @pytest.fixture
    def open_offsets(
        self, pulsar: Pulsar, pulsar_namespace: str
    ) -> Callable[[], Awaitable[Owner]]:
        async def again() -> Owner:
            one = Cluster(pulsar, state_topic(pulsar_namespace, "broker-0"))
            state = await one.open("a")
            await state.take_over()
            return Owner(one, state)

        return again


@pytest.fixture
def topic(pulsar_namespace: str) -> str:
    return state_topic(pulsar_namespace, "broker-0")


@server
@jvm
def test_a_follower_sees_commits_within_about_a_second(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            states = [await one.open(node) for node in "ab"]
            leader, follower = (PulsarOffsets(state) for state in states)
            await states[0].take_over()
            took_s = []
            for offset in range(5):
                began_s = time.monotonic()
                leader.commit("g", "t", 0, offset)
                await until(lambda offset=offset: follower.get("g", "t", 0) == offset)  # type: ignore[misc]
                took_s.append(time.monotonic() - began_s)
            assert min(took_s) < 1.5
            leader.commit("g", "u", 1, 5)
            leader.forget(topic="t")
            await leader.flush()
            await until(lambda: follower.topics("g") == ["u"])
            assert follower.queues("g", "t") == {}
            for state in states:
                await state.close()

    asyncio.run(main())


@server
@jvm
def test_only_the_leader_commits(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            offsets = PulsarOffsets(state)
            await state.take_over()
            offsets.commit("g", "t", 0, 5)
            await state.give_up()
            for offset in (5, 6):
                with pytest.raises(LogUnavailableError, match="does not lead"):
                    offsets.commit("g", "t", 0, offset)
            with pytest.raises(LogUnavailableError, match="does not lead"):
                offsets.forget(group="g")
            assert offsets.get("g", "t", 0) == 5
            await state.take_over()
            offsets.commit("g", "t", 0, 6)
            await offsets.close()
            with pytest.raises(LogUnavailableError, match="closed"):
                offsets.commit("g", "t", 0, 7)
            await state.close()

    asyncio.run(main())


@server
@jvm
def test_commits_that_were_not_flushed_are_taken_back_with_the_lead(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            states = [await one.open(node, flush_interval_s=3600) for node in "ab"]
            old, new = (PulsarOffsets(state) for state in states)
            await states[0].take_over()
            old.commit("g", "t", 0, 5)
            await old.flush()
            old.commit("g", "t", 0, 6)
            old.commit("g", "t", 1, 6)
            old.commit("h", "t", 0, 6)
            await states[1].take_over()
            assert new.queues("g", "t") == {0: 5}
            await until(lambda: not states[0].leading)
            assert old.queues("g", "t") == {0: 5}
            assert list(old.groups()) == ["g"]
            with pytest.raises(LogUnavailableError, match="taken back"):
                await old.flush()
            await old.flush()
            for state in states:
                await state.close()

    asyncio.run(main())


@server
@jvm
def test_facts_that_are_no_offsets_are_named_and_left_out(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            state.put("offset/g/t/0", "5")
            state.put("offset/g/t/1", "many")
            state.put("offset/g", "5")
            with structlog.testing.capture_logs() as logged:
                offsets = PulsarOffsets(state)
            assert {entry["key"] for entry in logged} == {"offset/g", "offset/g/t/1"}
            assert offsets.queues("g", "t") == {0: 5}
            await state.close()

    asyncio.run(main())
