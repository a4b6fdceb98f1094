"""What the tests of values have in common: a value, and where it comes to."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.deploy.helm import Objects, rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "mq-ropeway"
"""What the objects of `rendered` are called."""


class Case(NamedTuple):
    """A value other than its default, and where it comes to."""

    path: str
    value: Any
    found: Callable[[Objects], Any]
    base: Mapping[str, Any] = {}
    """What else has to be set for it to count."""
    expected: Any = None
    """What is found then, where that is not the value itself."""


def each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """Have a test run with each case, under the value's name."""
    return pytest.mark.parametrize("case", cases, ids=[one.path for one in cases])


def check(case: Case) -> None:
    """See that a value comes to where it should, and that nothing else does."""
    expected = case.value if case.expected is None else case.expected
    changed = rendered(merged(case.base, nested(case.path, case.value)))
    assert case.found(changed) == expected
    try:
        before = case.found(_without(json.dumps(case.base)))
    except (KeyError, IndexError, ValueError):
        return  # what it is found in is not there
    assert before != expected


@functools.cache
def _without(base: str) -> Objects:
    return rendered(json.loads(base))


def nested(path: str, value: Any) -> dict[str, Any]:
    """A value as the chart is given it."""
    first, dot, rest = path.partition(".")
    return {first: nested(rest, value) if dot else value}


def merged(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of values, table by table."""
    both = {**below, **over}
    for key in below.keys() & over.keys():
        if isinstance(below[key], dict) and isinstance(over[key], dict):
            both[key] = merged(below[key], over[key])
    return both


def secret(directory: str) -> Callable[[Objects], str | None]:
    """Finds the Secret that pods have as files in a directory of the configuration."""

    def found(objects: Objects) -> str | None:
        mounts = {one["name"]: one for one in objects.container["volumeMounts"]}
        for volume in objects.pod["spec"]["volumes"]:
            if volume["name"] == directory:
                assert mounts[directory]["mountPath"] == f"/etc/ropeway/{directory}"
                assert volume["secret"]["defaultMode"] == 0o440
                name: str = volume["secret"]["secretName"]
                return name
        return None

    return found


def argument(start: str) -> Callable[[Objects], str]:
    """Finds the rest of a node's argument that begins so."""

    def found(objects: Objects) -> str:
        (one,) = (
            one.removeprefix(start)
            for one in objects.container["args"]
            if one.startswith(start)
        )
        return one

    return found


def pre_stop(program: str) -> Callable[[Objects], int]:
    """Finds how many seconds a program has before a node is told to stop."""

    def found(objects: Objects) -> int:
        *_, script = objects.container["lifecycle"]["preStop"]["exec"]["command"]
        (seconds,) = re.findall(rf"\b{program} (\d+)", script)
        return int(seconds)

    return found


def in_pods(key: str) -> Callable[[Objects], Any]:
    """Finds a field of pods."""
    return lambda objects: objects.pod["spec"].get(key)


def in_containers(key: str) -> Callable[[Objects], Any]:
    """Finds a field of the nodes' containers."""
    return lambda objects: objects.container.get(key)


def in_metadata(key: str, kind: str, name: str = NAME) -> Callable[[Objects], Any]:
    """Finds the labels or annotations of an object."""
    return lambda objects: objects.of(kind)[name]["metadata"].get(key)


def in_spec(kind: str, name: str = NAME) -> Callable[[Objects], Any]:
    """Finds the specification of an object."""
    return lambda objects: objects.of(kind)[name]["spec"]
