"""Which function works on each method of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

METHODS: dict[str, Callable[..., Any]] = {}
"""What works on each method of the service, by its name."""


def rpc(name: str) -> Callable[[F], F]:
    """Make a function the one that works on a method.

    It is given the request and the `Call`. One that answers once is a coroutine
    function; one that answers with a stream is an asynchronous generator.
    """

    def register(function: F) -> F:
        if name in METHODS:
            raise ValueError(f"{name} is worked on by two functions")
        METHODS[name] = function
        return function

    return register
