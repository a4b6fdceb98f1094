"""What every handler of the site has at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from ropeway.gateway.processors import context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.app import App
    from ropeway.gateway.config import HttpConfig
    from ropeway.gateway.http.console import Console
    from ropeway.gateway.http.day_history import DayHistory
    from ropeway.gateway.http.history import History
    from ropeway.gateway.http.on_behalf import OnBehalf


class State(NamedTuple):
    """The node, and what the site knows besides: in whose name it asks brokers."""

    app: App
    config: HttpConfig
    console: Console
    history: History
    day: DayHistory
    user: OnBehalf | None = None
    """Who has signed in; None where nobody has to."""
    workers: Mapping[str, int] = {}
    """The sites' ports of all workers, where there are several, by their brokers."""


def shows(state: State, topic: str) -> bool:
    """Whether the user is shown a topic, where all are listed."""
    user = state.user
    principal = user.principal if user is not None else None
    return context.shows(state.app.node, principal, topic)


STATE: web.AppKey[State] = web.AppKey("state")
"""That of everybody, where nobody has to sign in."""

OF_REQUEST: web.RequestKey[State] = web.RequestKey("state")
"""The state of the user who asks."""


def state_of(request: web.Request) -> State:
    """The state of the user who asks."""
    return request[OF_REQUEST]
