"""Tells the lines that could be changed and that no test reaches: nobody would notice.

It costs no mutant: a run without a change has noted which lines its tests reach.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scripts.mutants.cores import CORES
from scripts.mutants.operators import mutants
from scripts.mutants.patching import lines_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from pathlib import Path

    Line = tuple[str, int]


def keep(file: Path, reached: Iterable[Line]) -> None:
    """Write down which lines were reached."""
    file.write_text(json.dumps(sorted(set(reached))))


def of_core(root: Path, core: str, state: Path) -> Iterator[str]:
    """The lines of a core, as people read them.

    Args:
        root: The tree; lines are told rightly where it is as it was measured.
        core: The core's name.
        state: Where the run without a change was kept.

    Raises:
        OSError: It was not run yet.
    """
    file = state / f"{core.replace('/', '-')}.reached"
    reached = {(path, line) for path, line in json.loads(file.read_text())}
    for path in CORES[core].files(root):
        yield from of_file(path, (root / path).read_bytes(), reached)


def of_file(path: str, source: bytes, reached: Container[Line]) -> Iterator[str]:
    """The same of a file."""
    known = lines_of(compile(source, path, "exec"))
    told = set()
    for mutant in mutants(path, source):
        # A line that is a piece of an expression counts as the one before it.
        line = max((one for one in known if one <= mutant.line), default=mutant.line)
        if mutant.in_function and (path, line) not in reached and line not in told:
            told.add(line)
            yield f"{path}:{mutant.line}: {mutant.was}"
