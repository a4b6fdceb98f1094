"""What takes long is told from a machine that stood still."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.promptness import promptly


def test_a_machine_that_stands_still_at_the_very_end_does_not_count():
    async def main() -> None:
        async with promptly(0.2):
            await asyncio.sleep(0)
            time.sleep(0.5)  # noqa: ASYNC251 - nothing has a turn meanwhile

    asyncio.run(main())


def test_what_waits_for_long_is_not_prompt():
    async def main() -> None:
        with pytest.raises(AssertionError):
            async with promptly(0.05):
                await asyncio.sleep(0.3)

    asyncio.run(main())
