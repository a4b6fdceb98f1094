"""Writes what processors change to the audit log; `changes` says what that is.

The node that works on a change writes its lines, one for each thing that is changed; so
a request that was sent on is written once, with the client that sent it. Refusals by
access control are written where it decides, and do not come here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.common.eager import eager, own_task
from ropeway.gateway.node.sql import NotCompiledError
from ropeway.gateway.processors.changes import CHANGES, Hidden
from ropeway.gateway.processors.context import Answer, Later, Refusal, request_name
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.header import Header
from ropeway.storage.api import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ropeway.common.eager import Eventual
    from ropeway.gateway.processors.changes import Look
    from ropeway.gateway.processors.context import Context

    Result = Header | Answer | Later
    Processor = Callable[[Any, Context], Eventual[Result]]


def recorded(code: int, processor: Processor) -> Processor:
    """A processor whose changes are written to the audit log."""
    change = CHANGES.get(code)
    if change is None:
        return processor

    @eager
    async def work(request: Any, context: Context) -> Result:
        before = _state(change, request, context)
        try:
            result = processor(request, context)
            if not isinstance(result, (Header, Answer, Later)):
                result = await own_task(result)
        except Exception as error:
            if before is not None:
                _fail(change, request, context, before, error)
            raise
        if before is not None:
            _write(change, request, context, before)
        return result

    return work


def _fail(
    change: Look,
    request: Any,
    context: Context,
    before: Mapping[str, Any],
    error: Exception,
) -> None:
    if isinstance(error, (NotReadyError, NotCompiledError)):
        # It is begun again.
        return
    if isinstance(error, Refusal):
        failure = f"{error.code.name}: {error.remark}"
    elif code := code_of(error):
        failure = f"{code.name}: {error}"
    else:
        failure = ResponseCode.SYSTEM_ERROR.name
    _write(change, request, context, before, failure)


def _state(change: Look, request: Any, context: Context) -> dict[str, Any] | None:
    try:
        return change(request, context)
    except Exception:  # noqa: BLE001 - the processor refuses what cannot be read
        return {"": None}


def _write(
    change: Look,
    request: Any,
    context: Context,
    before: Mapping[str, Any],
    failure: str = "",
) -> None:
    after = _state(change, request, context) or {}
    for resource, old in before.items():
        new = after.get(resource)
        note(context, resource, *_hide(old, new), failure=failure)


def _hide(old: Any, new: Any) -> tuple[Any, Any]:
    """Tell of what is hidden whether it is another."""
    if isinstance(old, dict) and isinstance(new, dict):
        others = {
            key: "another"
            for key, value in new.items()
            if isinstance(value, Hidden) and value != old.get(key)
        }
        new = {**new, **others}
    return old, new


def note(
    context: Context,
    resource: str,
    before: Any = None,
    after: Any = None,
    *,
    failure: str = "",
) -> None:
    """Write one change that a request makes."""
    context.node.audit.change(
        request_name(context.code),
        context.principal,
        context.peer.source,
        resource,
        before,
        after,
        failure=failure,
    )
