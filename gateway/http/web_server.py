"""The site's web server: probes, metrics, the API and the page, on one port.

Built on aiohttp, which runs on the loop that serves clients; so no answer here may take
long at a time. No error's own text leaves it: what is refused says why in a sentence,
and what fails is in the log.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import structlog
from aiohttp import web

from ropeway.client.config import ClientConfig
from ropeway.client.errors import (
    AdminError,
    ConnectionFailedError,
    RemotingError,
    ResponseError,
    TopicNotFoundError,
)
from ropeway.gateway.config import ConfigError
from ropeway.gateway.http import guard, health, login
from ropeway.gateway.http.api import ROUTES
from ropeway.gateway.http.connections import MAX_BODY_BYTES, Runner, in_turn
from ropeway.gateway.http.console import Console, in_words
from ropeway.gateway.http.day_history import DayHistory
from ropeway.gateway.http.history import History
from ropeway.gateway.http.metrics import of_workers, page, text
from ropeway.gateway.http.on_behalf import OnBehalf, console_of
from ropeway.gateway.http.params import Params, RefusedError
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.sessions import SESSIONS, Sessions
from ropeway.gateway.http.state import OF_REQUEST, STATE, State
from ropeway.gateway.http.static import FILES, HEADERS
from ropeway.gateway.open_files import room
from ropeway.gateway.server import bind
from ropeway.gateway.tls import node_context
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.app import App
    from ropeway.gateway.config import Config, HttpConfig

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)

_CLOSE_S = 1.0
_STATUSES = (
    (TopicNotFoundError, 404),
    (ConnectionFailedError, 503),
    (AdminError, 409),
    (RemotingError, 502),
)
"""What brokers did not do, for HTTP; the first kind that fits."""
_REFUSALS = {
    ResponseCode.NO_PERMISSION.value: 403,
    ResponseCode.INVALID_PARAMETER.value: 400,
}
"""What brokers refuse for what was asked, and not for how they are."""
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound
_NEVER_S = 365 * 86400.0
"""The console asks for each route when it needs it."""


def _bounded(app: App, config: HttpConfig) -> HttpConfig:
    """As many connections as there are file descriptors for."""
    most = room(msgspec.structs.replace(app.node.config, http=config)).page
    return msgspec.structs.replace(config, connections=most)


@asynccontextmanager
async def open_site(
    app: App, config: HttpConfig, workers: Mapping[str, int]
) -> AsyncIterator[str]:
    """Serve a node's site within the block; where it listens, as an address.

    Args:
        app: The node.
        config: Where to serve it.
        workers: The sites' ports of all workers, where it is one of several.

    Raises:
        ServerError: Its port cannot be had.
        ConfigError: It is to speak TLS and there is no certificate.
        OSError: The certificate cannot be used.
    """
    context = None
    if config.tls:
        if app.node.config.tls is None or app.certificates is None:
            raise ConfigError("http.tls is true; it needs the table tls")
        context = app.certificates.following()
    listening = bind(config.host, config.port)
    host, port = listening.getsockname()[:2]
    day = DayHistory(app.node)
    async with Console(_name_server(app), config=_client(app.node.config)) as console:
        runner = Runner(
            _application(
                State(app, config, console, History(console), day, workers=workers),
                _sessions(app, config, day),
            ),
            _bounded(app, config),
            app.node.fair_queue,
            access_log=None,
            shutdown_timeout=_CLOSE_S,
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listening, ssl_context=context).start()
            yield f"http{'s' if context else ''}://{host_port.join(host, port)}"
        finally:
            await runner.cleanup()
            listening.close()


def _name_server(app: App) -> str:
    """This node itself: it knows the routes, and who leads which broker."""
    listener = app.server.listeners[0]
    tls = app.node.config.tls
    if tls is not None and tls.required:
        # Its certificate has to name it.
        return listener.advertised
    return host_port.join(_ANYWHERE.get(listener.host, listener.host), listener.port)


def _client(config: Config) -> ClientConfig:
    return ClientConfig(route_interval_s=_NEVER_S, tls=node_context(config.tls))


def _sessions(app: App, config: HttpConfig, day: DayHistory) -> Sessions | None:
    """Those who sign in, where access control is on."""
    node = app.node
    if node.guard is None:
        return None

    def begin(source: Source, principal: Principal | None) -> State:
        user = OnBehalf(node.forwarder, source, principal)
        console = console_of(app, user)
        return State(app, config, console, History(console), day, user)

    sessions = Sessions(node.guard, node.audit, begin)
    node.reauthorization.add(sessions, node.reauthorization.changes)
    return sessions


def _application(state: State, sessions: Sessions | None) -> web.Application:
    application = web.Application(
        middlewares=[in_turn, _answer_errors, _guard], client_max_size=MAX_BODY_BYTES
    )
    application[STATE] = state
    if sessions is not None:
        application[SESSIONS] = sessions
        application.on_cleanup.append(_sign_out_all)
    application.router.add_get("/healthz", _healthz)
    application.router.add_get("/readyz", _readyz)
    application.router.add_get("/metrics", _metrics)
    application.router.add_get("/metrics/workers", _metrics_of_workers)
    application.add_routes(login.ROUTES)
    application.add_routes(ROUTES)
    application.router.add_get("/{path:.*}", _file)
    application.cleanup_ctx.append(_history)
    return application


async def _sign_out_all(application: web.Application) -> None:
    await application[SESSIONS].close_all()


async def _history(application: web.Application) -> AsyncIterator[None]:
    history, day = application[STATE].history, application[STATE].day
    history.start()
    await day.start()
    yield
    await history.close()
    await day.close()


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RefusedError as error:
        return reply({"error": error.sentence}, status=error.status)
    except RemotingError as error:
        return reply({"error": in_words(error)}, status=_status(error))
    except web.HTTPException as error:
        return _refused_by_router(request, error)
    except Exception:
        log.exception("page failed", path=request.path)
        return reply({"error": "the gateway failed; its log says why"}, status=500)


def _status(error: RemotingError) -> int:
    if isinstance(error, ResponseError) and error.code in _REFUSALS:
        return _REFUSALS[error.code]
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def _refused_by_router(
    request: web.Request, error: web.HTTPException
) -> web.StreamResponse:
    sentence = f"{error.reason} at {request.path!r:.200}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        sentence = (
            f"{request.path!r:.200} takes no {request.method}; allowed: {allowed}"
        )
    elif error.status == web.HTTPNotFound.status_code:
        sentence = f"there is nothing at {request.path!r:.200}; the page is at /"
    return reply({"error": sentence}, status=error.status)


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.startswith("/api/"):
        guard.check(request, request.app[STATE].config)
        if request.path != login.PATH:
            request[OF_REQUEST] = await login.find(request)
    return await handler(request)


async def _healthz(_: web.Request) -> web.Response:
    return reply({"alive": True})


async def _readyz(request: web.Request) -> web.Response:
    Params(request.query)
    node = request.app[STATE].app.node
    reasons = await health.unready(node)
    answer = {"ready": not reasons, "role": health.role(node), "reasons": reasons}
    return reply(answer, status=503 if reasons else 200)


async def _metrics(request: web.Request) -> web.Response:
    await login.check_metrics(request)
    body = await page.render(request.app[STATE].app)
    return web.Response(body=body, headers={"Content-Type": text.CONTENT_TYPE})


async def _metrics_of_workers(request: web.Request) -> web.Response:
    await login.check_metrics(request)
    state = request.app[STATE]
    shown = request.headers.get("Authorization")
    body = await of_workers.render_all(state.app, state.workers, shown)
    return web.Response(body=body, headers={"Content-Type": text.CONTENT_TYPE})


async def _file(request: web.Request) -> web.Response:
    found = FILES.get(request.path)
    if found is None:
        raise web.HTTPNotFound
    return found.answer(request, HEADERS)
