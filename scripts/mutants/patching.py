"""Puts a changed function's code into the functions that live in this process."""

from __future__ import annotations

import gc
from types import CodeType, FunctionType


def functions_of(path: str) -> dict[tuple[str, int], list[FunctionType]]:
    """The functions that were made from a file, by qualified name and first line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    gc.unfreeze()  # what is frozen is not listed
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == path:
            code = one.__code__
            found.setdefault((code.co_qualname, code.co_firstlineno), []).append(one)
    gc.freeze()  # or each child looks at all of it, and copies the pages
    return found


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def lines_of(code: CodeType) -> set[int]:
    """The lines that code has instructions of, at every depth."""
    own = {line for _, _, line in code.co_lines() if line is not None}
    return own.union(*(lines_of(one) for one in _inner(code)))


def changed(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]]:
    """Pairs of old and new code that differ, at every depth that can be compared."""
    if old == new:
        return []
    pairs = [(old, new)]
    inner, others = _inner(old), _inner(new)
    if [one.co_qualname for one in inner] == [one.co_qualname for one in others]:
        for one, other in zip(inner, others, strict=True):
            pairs += changed(one, other)
    return pairs


def patch(
    path: str,
    old: bytes,
    new: bytes,
    functions: dict[tuple[str, int], list[FunctionType]],
) -> bool:
    """Have the functions of a file behave as the new text says.

    Returns:
        False where that takes a new import: nothing that lives was changed, or what
        it closes over has.
    """
    pairs = changed(compile(old, path, "exec"), compile(new, path, "exec"))
    patched = False
    for before, after in pairs:
        for one in functions.get((before.co_qualname, before.co_firstlineno), []):
            if len(one.__code__.co_freevars) != len(after.co_freevars):
                return False
            if one.__code__.co_freevars != after.co_freevars:
                return False
            one.__code__ = after
            patched = True
    return patched
