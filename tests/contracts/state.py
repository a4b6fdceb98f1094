"""What every replicated state must do; a fixture makes it a backend's test."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ropeway.storage.state import State

OpenState = Callable[..., Awaitable["State"]]
"""Called with the node's name, and if wanted with what it does when deposed."""
WAIT_SECONDS = 60


async def until(condition: Callable[[], bool]) -> None:
    """Return when a condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - any condition, of any backend
            await asyncio.sleep(0.01)


class StateContract:
    """Laws of `storage.state.State`. `open_state` opens the same one on a node."""

    @pytest.fixture
    def open_state(self) -> OpenState:
        """A coroutine function `(node, deposed)` that opens the state as a follower."""
        raise NotImplementedError

    @pytest.fixture
    def run(self) -> Callable[[Coroutine[None, None, None]], None]:
        """Runs a test's coroutine; a backend may need things of that loop."""
        return asyncio.run

    def test_a_new_state_is_empty_and_follows(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            state = await open_state("a")
            assert not state.leading
            assert state.held_until_s <= time.monotonic()
            assert state.get("k") is None
            assert state.items("") == []
            await state.flush()
            await state.close()
            await state.close()

        run(main())

    def test_only_a_leader_puts(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            state = await open_state("a")
            with pytest.raises(LogUnavailableError, match="does not lead"):
                state.put("k", "1")
            await state.take_over()
            assert state.leading
            state.put("k", "1")
            await state.give_up()
            assert not state.leading
            with pytest.raises(LogUnavailableError, match="does not lead"):
                state.put("k", "2")
            with pytest.raises(LogUnavailableError, match="does not lead"):
                state.put("k", None)
            assert state.get("k") == "1"
            await state.close()
            with pytest.raises(LogUnavailableError):
                await state.take_over()

        run(main())

    def test_a_leader_sees_its_puts_at_once(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            state = await open_state("a")
            await state.take_over()
            for key in ("b/2", "a", "b/1", "b/3"):
                state.put(key, f"value of {key}")
            state.put("b/3", None)
            state.put("a", "")
            seen = [("b/1", "value of b/1"), ("b/2", "value of b/2")]
            for _ in range(2):
                assert state.get("a") == ""
                assert state.get("b/3") is None
                assert state.items("b/") == seen
                assert state.items("") == [("a", ""), *seen]
                await state.flush()
            state.put("b/1", None)
            assert state.items("b/") == seen[1:]
            await state.close()

        run(main())

    def test_keys_and_values_are_any_text(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        facts = {"=": "-1", "k\0": "\0", "größe %/|": "五\n" * 5000, "-": "=", "l": ""}

        async def main() -> None:
            state = await open_state("a")
            await state.take_over()
            for key, value in facts.items():
                state.put(key, value)
            for key in ("", "/leader", "\ud800"):
                with pytest.raises(ValueError):
                    state.put(key, "1")
            with pytest.raises(ValueError):
                state.put("k", "v" * (1 << 20))
            await state.close()
            again = await open_state("a")
            assert dict(again.items("")) == facts
            await again.close()

        run(main())

    def test_followers_see_what_a_leader_put(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            leader, follower = await open_state("a"), await open_state("b")
            told: list[tuple[str, str | None]] = []
            follower.watch("k", lambda key, value: told.append((key, value)))
            own: list[str] = []
            leader.watch("", lambda key, _: own.append(key))
            await leader.take_over()
            leader.put("k1", "1")
            leader.put("other", "1")
            # Without a flush: within an interval.
            await until(lambda: follower.get("other") == "1")
            leader.put("k1", None)
            leader.put("k2", "2")
            await leader.flush()
            await until(lambda: follower.get("k2") == "2")
            assert follower.items("") == [("k2", "2"), ("other", "1")]
            assert told == [("k1", "1"), ("k1", None), ("k2", "2")]
            assert own == []
            late = await open_state("c")
            assert late.items("") == follower.items("")
            for state in (late, follower, leader):
                await state.close()

        run(main())

    def test_taking_over_deposes_the_leader_and_finds_all_it_flushed(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            reasons: list[str] = []
            old = await open_state("a", reasons.append)
            new = await open_state("b")
            await old.take_over()
            assert old.held_until_s > time.monotonic()
            flushed = 0
            stop = asyncio.Event()

            async def write() -> None:
                nonlocal flushed
                number = 0
                while not stop.is_set():
                    number += 1
                    try:
                        old.put("n", str(number))
                        old.put(f"n/{number}", "x" * 100)
                        await old.flush()
                    except LogUnavailableError:
                        return
                    flushed = number

            writer = asyncio.create_task(write())
            await until(lambda: flushed > 20)
            await new.take_over()
            assert time.monotonic() > old.held_until_s
            assert int(new.get("n") or 0) >= flushed
            assert len(new.items("n/")) >= flushed
            seen = new.items("")
            await until(lambda: not old.leading)
            stop.set()
            await writer
            assert len(reasons) == 1
            with pytest.raises(LogUnavailableError):
                old.put("n", "0")
            assert new.items("") == seen
            new.put("n", "-1")
            await until(lambda: old.get("n") == "-1")
            assert old.items("") == new.items("")
            for state in (old, new):
                await state.close()
            assert len(reasons) == 1

        run(main())

    def test_what_a_deposed_node_did_not_flush_is_taken_back(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            old, new = await open_state("a"), await open_state("b")
            told: list[tuple[str, str | None]] = []
            old.watch("", lambda key, value: told.append((key, value)))
            await old.take_over()
            old.put("k", "1")
            await old.flush()
            await new.take_over()
            new.put("k", "3")
            await new.flush()
            # Whether it has heard of it or not: what it puts now does not count.
            if old.leading:
                old.put("k", "2")
                old.put("l", "2")
                with pytest.raises(LogUnavailableError):
                    await old.flush()
            await until(lambda: old.get("k") == "3")
            assert old.get("l") is None
            assert [value for key, value in told if key == "k"][-1] == "3"
            assert new.items("") == [("k", "3")]
            for state in (old, new):
                await state.close()

        run(main())

    def test_the_lead_can_go_to_and_fro_in_good_order(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            reasons: list[str] = []
            states = [await open_state(node, reasons.append) for node in "ab"]
            for turn in range(6):
                state = states[turn % 2]
                await state.take_over()
                await state.take_over()
                assert state.held_until_s > time.monotonic()
                assert state.get("turn") == (str(turn - 1) if turn else None)
                state.put("turn", str(turn))
                await state.give_up()
                await state.give_up()
                assert state.held_until_s <= time.monotonic()
            assert reasons == []
            for state in states:
                await state.close()

        run(main())

    def test_of_many_that_take_over_at_once_no_two_lead(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def led(states: list[State]) -> State | None:
            """The one that leads and can flush, if there is one already."""
            leaders = [state for state in states if state.leading]
            if len(leaders) != 1:
                return None
            try:
                leaders[0].put("k", "1")
                await leaders[0].flush()
            except LogUnavailableError:
                return None
            return leaders[0]

        async def main() -> None:
            states = [await open_state(node) for node in "abcd"]
            await asyncio.gather(
                *(state.take_over() for state in states), return_exceptions=True
            )
            async with asyncio.timeout(WAIT_SECONDS):
                while (leader := await led(states)) is None:
                    # They may have driven each other out: somebody asks again.
                    if not any(state.leading for state in states):
                        with contextlib.suppress(LogUnavailableError):
                            await states[0].take_over()
                    await asyncio.sleep(0.01)
            await until(lambda: all(state.get("k") == "1" for state in states))
            assert [state for state in states if state.leading] == [leader]
            for state in states:
                await state.close()

        run(main())

    def test_a_lease_moves_on_while_a_node_leads(
        self, open_state: OpenState, run: Callable[..., None]
    ) -> None:
        async def main() -> None:
            state = await open_state("a")
            await state.take_over()
            first = state.held_until_s
            await until(lambda: state.held_until_s > first)
            assert state.leading
            await state.close()
            assert state.held_until_s <= time.monotonic()

        run(main())


def ignore(_reason: str) -> None:
    """Do nothing about being deposed."""
