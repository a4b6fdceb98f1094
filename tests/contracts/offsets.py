"""What every store of consumer offsets must do; a fixture makes it a backend's test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.offsets import Offsets


class OffsetsContract:
    """Laws of `storage.offsets.Offsets`. `open_offsets` opens the same ones again."""

    @pytest.fixture
    def open_offsets(self) -> Callable[[], Awaitable[Offsets]]:
        """A coroutine function that opens the offsets; what was kept is there."""
        raise NotImplementedError

    def test_commits_are_seen_at_once_and_may_go_back(
        self, open_offsets: Callable[[], Awaitable[Offsets]]
    ) -> None:
        async def main() -> None:
            offsets = await open_offsets()
            assert offsets.get("g", "t", 0) is None
            offsets.commit("g", "t", 0, 7)
            offsets.commit("g", "t", 1, 0)
            assert offsets.get("g", "t", 0) == 7
            offsets.commit("g", "t", 0, 3)
            assert offsets.queues("g", "t") == {0: 3, 1: 0}
            assert offsets.queues("g", "absent") == {}
            await offsets.close()

        asyncio.run(main())

    def test_what_was_committed_outlives_a_close(
        self, open_offsets: Callable[[], Awaitable[Offsets]]
    ) -> None:
        async def main() -> None:
            offsets = await open_offsets()
            for group in ("a", "b"):
                for topic in ("y", "x"):
                    offsets.commit(group, topic, 0, 1 << 52)
            await offsets.close()
            await offsets.close()
            again = await open_offsets()
            assert sorted(again.groups()) == ["a", "b"]
            assert again.topics("a") == ["x", "y"]
            assert again.topics("absent") == []
            assert again.get("b", "y", 0) == 1 << 52
            await again.close()

        asyncio.run(main())

    def test_the_furthest_group_of_a_queue_is_known(
        self, open_offsets: Callable[[], Awaitable[Offsets]]
    ) -> None:
        async def main() -> None:
            offsets = await open_offsets()
            assert offsets.furthest("x", 0) is None
            for group, queue_id, offset in (("a", 0, 5), ("b", 0, 9), ("a", 1, 3)):
                offsets.commit(group, "x", queue_id, offset)
            assert offsets.furthest("x", 0) == (9, "b")
            offsets.commit("b", "x", 0, 2)
            assert offsets.furthest("x", 0) == (5, "a")
            await offsets.close()
            again = await open_offsets()
            assert again.furthest("x", 0) == (5, "a")
            assert again.furthest("x", 1) == (3, "a")
            assert again.furthest("x", 2) is None
            again.forget(group="a")
            assert again.furthest("x", 0) == (2, "b")
            assert again.furthest("x", 1) is None
            await again.close()

        asyncio.run(main())

    def test_the_groups_of_a_topic_are_known(
        self, open_offsets: Callable[[], Awaitable[Offsets]]
    ) -> None:
        async def main() -> None:
            offsets = await open_offsets()
            assert not offsets.groups_of("x")
            for group, topic in (("a", "x"), ("b", "x"), ("b", "y")):
                offsets.commit(group, topic, 0, 5)
            assert sorted(offsets.groups_of("x")) == ["a", "b"]
            await offsets.close()
            again = await open_offsets()
            again.forget(group="b")
            assert sorted(again.groups_of("x")) == ["a"]
            assert not again.groups_of("y")
            await again.close()

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("forgotten", "left"),
        [
            ({"group": "a"}, ["b/x", "b/y"]),
            ({"topic": "x"}, ["a/y", "b/y"]),
            ({"group": "a", "topic": "x"}, ["a/y", "b/x", "b/y"]),
            ({"group": "absent"}, ["a/x", "a/y", "b/x", "b/y"]),
            ({"topic": "x", "queue_id": 0}, ["a/y", "b/y"]),
            ({"topic": "x", "queue_id": 1}, ["a/x", "a/y", "b/x", "b/y"]),
        ],
    )
    def test_what_is_forgotten_stays_forgotten(
        self,
        open_offsets: Callable[[], Awaitable[Offsets]],
        forgotten: dict[str, Any],
        left: list[str],
    ) -> None:
        def known(offsets: Offsets) -> list[str]:
            return sorted(
                f"{g}/{t}" for g in offsets.groups() for t in offsets.topics(g)
            )

        async def main() -> None:
            offsets = await open_offsets()
            for group in ("a", "b"):
                for topic in ("x", "y"):
                    offsets.commit(group, topic, 0, 5)
            await offsets.flush()
            offsets.forget(**forgotten)
            assert known(offsets) == left
            await offsets.close()
            again = await open_offsets()
            assert known(again) == left
            await again.close()

        asyncio.run(main())
