"""What is left to Python's collector of things that have ended: nothing of ours.

It looks at all objects that there are, and holds up everybody meanwhile. So whatever
comes and goes by the thousand has to be gone with its last user.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.remoting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_OURS = Path(__file__).resolve().parent.parent
_TESTS = _OURS / "tests"


@asynccontextmanager
async def none_left() -> AsyncIterator[None]:
    """Check that what begins and ends in the block leaves no cycles of objects.

    It waits for tasks that were begun there; for all else the block waits itself.
    """
    before = asyncio.all_tasks()
    gc.collect()
    gc.disable()
    # What an earlier test has left may end meanwhile, with a thread of its own.
    there = gc.get_objects()
    try:
        yield
        await until(lambda: asyncio.all_tasks() <= before)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = sorted({name for one in gc.garbage if (name := _name(one))})
    finally:
        gc.set_debug(0)
        there.clear()
        gc.garbage.clear()
        gc.enable()
    assert not left, f"only Python's collector frees {left}"


def _name(one: object) -> str:
    """What is of ours; or else nothing."""
    kind = type(one)
    if str(kind.__module__).startswith("ropeway."):
        return kind.__qualname__
    for attribute in ("cr_code", "ag_code", "gi_code", "f_code"):
        code = getattr(one, attribute, None)
        if code is not None:
            file = Path(code.co_filename).resolve()
            is_ours = file.is_relative_to(_OURS) and not file.is_relative_to(_TESTS)
            return code.co_qualname if is_ours and ".venv" not in file.parts else ""
    return ""
