"""The last answers that servers gave to the raw clients and agents of the tests."""

from __future__ import annotations

import time
from collections import deque

from ropeway.gateway.wire.codes import RequestCode, ResponseCode

KEPT = 20
_answers: deque[tuple[float, int | str, int, str | None]] = deque(maxlen=KEPT)


def note(request: int | str, code: int, remark: str | None) -> None:
    """Keep an answer: to which request code or command, its code, and its remark."""
    _answers.append((time.time(), request, code, remark))


def since(began: float) -> list[str]:
    """Those that came since a time, a line for each."""
    return [
        f"{_name(RequestCode, request)}: {_name(ResponseCode, code)} {remark or ''}"
        for at, request, code, remark in _answers
        if at >= began
    ]


def _name(codes: type[RequestCode | ResponseCode], code: int | str) -> str:
    known = isinstance(code, int) and code in codes._value2member_map_
    return f"{code} {codes(code).name}" if known else str(code)
