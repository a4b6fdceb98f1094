"""Notes which lines of the mutated files each test runs, and which an import runs."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType


class Reach:
    """Lines of some files that were run since `note` was last called.

    A code object all of whose lines were seen is not followed again until then.

    Args:
        files: Full paths, by the path that results name them with.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._seen: set[tuple[str, int]] = set()
        self._left: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        """Follow this thread and those that are begun from now on."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """Follow nothing any more."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def note(self) -> set[tuple[str, int]]:
        """The lines since the last call of this, as pairs of path and line."""
        seen, self._seen, self._left = self._seen, set(), {}
        return seen

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        left = self._left.get(code)
        if left is None:
            left = {line for _, _, line in code.co_lines() if line is not None}
            left.discard(code.co_firstlineno)
            self._left[code] = left
        if not left:
            return None
        self._seen.add((code.co_filename, code.co_firstlineno))
        path, seen = code.co_filename, self._seen

        def line(frame: FrameType, _event: str, _arg: Any) -> Any:
            left.discard(frame.f_lineno)
            seen.add((path, frame.f_lineno))
            return line

        return line
