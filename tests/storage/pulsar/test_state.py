"""The state on a real Pulsar: the contract, leases, and crashes of every part."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import structlog

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.errors import FencedError
from ropeway.storage.pulsar.send_entry import EntryMetadata
from ropeway.storage.pulsar.state import LEASE_S, state_topic
from tests.contracts.state import OpenState, StateContract, until
from tests.storage.pulsar.states import Cluster, cluster, until_compacted
from tests.system.process import stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from ropeway.storage.pulsar.state_term import Term
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture
def topic(pulsar_namespace: str) -> str:
    return state_topic(pulsar_namespace, "broker-0")


class TestPulsarState(StateContract):
    @pytest.fixture
    def place(self) -> list[Cluster]:
        return []

    @pytest.fixture
    def open_state(self, place: list[Cluster]) -> OpenState:
        return lambda *args: place[0].open(*args)  # noqa: PLW0108 - not there yet

    @pytest.fixture
    def run(
        self, pulsar: Pulsar, topic: str, place: list[Cluster]
    ) -> Callable[[Awaitable[None]], None]:
        def run(main: Awaitable[None]) -> None:
            async def inside() -> None:
                async with cluster(pulsar, topic) as one:
                    place.append(one)
                    await main

            asyncio.run(inside())

        return run


LEADER = """
import asyncio, sys, time
from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.cluster import Cluster
from ropeway.storage.pulsar.state import open_state

async def main():
    service_url, admin_url, topic = sys.argv[1:]
    admin, client = Admin(admin_url), PulsarClient(service_url)
    deposed = asyncio.Event()
    cluster = Cluster(admin, client)
    state = await open_state(cluster, topic, "child", lambda _: deposed.set())
    await state.take_over()
    state.put("k", "1")
    await state.flush()
    print("leads", flush=True)
    # Comes while it is stopped.
    await asyncio.to_thread(sys.stdin.readline)
    print("held" if state.held_until_s > time.monotonic() else "not held", flush=True)
    try:
        state.put("k", "2")
        await state.flush()
        print("flushed", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
    await deposed.wait()
    print("deposed", flush=True)
    await state.close()
    await client.close()
    await admin.close()

asyncio.run(main())
"""


@pytest.fixture
def child(
    pulsar: Pulsar, topic: str, tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    """A process that leads."""
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", LEADER),
                *(pulsar.service_url, pulsar.admin_url, topic),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            assert line(process) == "leads"
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints and that is no log's."""
    assert process.stdout is not None
    while True:
        text = process.stdout.readline()
        if not text or " [" not in text:
            return text.strip()


def test_a_leader_that_was_frozen_is_not_certain_and_then_deposed(
    pulsar: Pulsar, topic: str, child: subprocess.Popen[str]
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            new = await one.open("new")
            with stopped(child.pid):
                await new.take_over()
                new.put("k", "3")
                await new.flush()
                assert child.stdin is not None
                child.stdin.write("\n")
                child.stdin.flush()
            said = [await asyncio.to_thread(line, child) for _ in range(3)]
            assert said == ["not held", "LogUnavailableError", "deposed"]
            assert new.leading
            assert new.items("") == [("k", "3")]
            await new.close()

    asyncio.run(main())


def test_a_leader_that_was_killed_is_followed_after_its_lease(
    pulsar: Pulsar, topic: str, child: subprocess.Popen[str]
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            new = await one.open("new")
            child.kill()
            began_s = time.monotonic()
            await new.take_over()
            assert time.monotonic() - began_s >= LEASE_S
            assert new.items("") == [("k", "1")]
            await new.close()

    asyncio.run(main())


def test_a_take_over_in_good_order_waits_for_no_lease(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            old = await one.open("old", lease_s=3600)
            new = await one.open("new", lease_s=3600)
            await old.take_over()
            old.put("k", "1")
            await old.give_up()
            async with asyncio.timeout(60):
                await new.take_over()
            assert new.get("k") == "1"
            await old.close()
            await new.close()

    asyncio.run(main())


def test_nobody_leads_before_the_lease_of_who_led_is_over(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            old = await one.open("old", lease_s=5)
            new = await one.open("new")
            await old.take_over()
            take_over = asyncio.create_task(new.take_over())
            held_until_s = 0.0
            while not take_over.done():
                held_until_s = max(held_until_s, old.held_until_s)
                assert not new.leading
                assert new.held_until_s == 0
                await asyncio.sleep(0.001)
            assert time.monotonic() > held_until_s
            await old.close()
            await new.close()

    asyncio.run(main())


def test_a_failed_take_over_leaves_a_follower(pulsar: Pulsar, topic: str) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            first = await one.open("first", lease_s=3600)
            slow = await one.open("slow")
            await first.take_over()
            waiting = asyncio.create_task(slow.take_over())
            await until(lambda: not first.leading)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert not slow.leading
            with pytest.raises(LogUnavailableError):
                slow.put("k", "1")
            for state in (first, slow):
                await state.close()

    asyncio.run(main())


def test_who_is_driven_out_at_the_moment_of_its_take_over_does_not_lead(
    pulsar: Pulsar, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            begin = state._begin

            async def begin_and_end(term: Term) -> None:
                await begin(term)
                term.end(FencedError("node b leads"))

            with monkeypatch.context() as patch:
                patch.setattr(state, "_begin", begin_and_end)
                with pytest.raises(LogUnavailableError, match="node b leads"):
                    await state.take_over()
            assert not state.leading
            await state.take_over()
            state.put("k", "1")
            await state.close()

    asyncio.run(main())


def test_entries_that_are_not_ours_are_named_and_left_out(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            state = await one.open("a")
            await state.take_over()
            state.put("k", "1")
            await state.close()
            client = one.client()
            foreign = await client.producer(topic, "foreign", lost=print)
            stored = asyncio.Queue[object]()
            for number, properties in enumerate([[], [("ropeway-state", "2")]]):
                foreign.send(
                    [b"=5"],
                    number,
                    lambda where, _: stored.put_nowait(where),
                    EntryMetadata(1, properties, "k"),
                )
            places = [str(await stored.get()) for _ in range(2)]
            await foreign.close()
            with structlog.testing.capture_logs() as logged:
                again = await one.open("a")
            warned = [one for one in logged if one["log_level"] == "warning"]
            assert [one["position"] for one in warned] == places
            assert all(one["topic"] == topic for one in warned)
            assert "ropeway-state is none; allowed: '1'" in warned[0]["reason"]
            assert "ropeway-state is '2'; allowed: '1'" in warned[1]["reason"]
            assert again.items("") == [("k", "1")]
            await again.take_over()
            await again.close()

    asyncio.run(main())


def test_a_topic_deleted_behind_our_back_deposes_and_can_be_led_again(
    pulsar: Pulsar, topic: str
) -> None:
    async def main() -> None:
        async with cluster(pulsar, topic) as one:
            reasons: list[str] = []
            state = await one.open("a", reasons.append)
            await state.take_over()
            state.put("k", "1")
            await state.flush()
            # Pulsar does not delete a topic that it is compacting.
            await until_compacted(one)
            path = topic.removeprefix("persistent://")
            await asyncio.to_thread(
                pulsar.admin, "DELETE", f"persistent/{path}?force=true"
            )
            await until(lambda: bool(reasons))
            assert not state.leading
            await state.take_over()
            state.put("l", "1")
            await state.flush()
            assert state.get("l") == "1"
            await state.close()

    asyncio.run(main())


@pytest.mark.slow
class TestOverARestart:
    """On a Pulsar that is killed."""

    def test_a_leader_goes_on_when_pulsar_was_killed_and_came_back(
        self, mortal_pulsar: Pulsar
    ) -> None:
        topic = state_topic("public/restart", "broker-0")

        async def main() -> None:
            async with cluster(mortal_pulsar, topic) as one:
                reasons: list[str] = []
                state = await one.open("a", reasons.append)
                follower = await one.open("b")
                await state.take_over()
                state.put("k", "1")
                await state.flush()
                await asyncio.to_thread(mortal_pulsar.kill)
                state.put("l", "2")
                await until(lambda: state.held_until_s < time.monotonic())
                await asyncio.to_thread(mortal_pulsar.start)
                await state.flush()
                await until(lambda: state.held_until_s > time.monotonic())
                assert reasons == []
                await until(lambda: follower.get("l") == "2")
                assert follower.items("") == state.items("")
                late = await one.open("c")
                assert late.items("") == [("k", "1"), ("l", "2")]
                for each in (late, follower, state):
                    await each.close()

        mortal_pulsar.make_namespace("public/restart")
        asyncio.run(main())


@pytest.mark.slow
class TestOnPulsar42(TestPulsarState):
    """The same on a newer one."""

    @pytest.fixture
    def pulsar(self, newer_pulsar: Pulsar) -> Pulsar:
        return newer_pulsar
