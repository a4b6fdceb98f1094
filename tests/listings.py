"""Lists for docs/compatibility.md: request codes, and the sub-commands of mqadmin."""

from collections.abc import Mapping

import ropeway.gateway.processors.all
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.processors.unsupported import REASONS
from ropeway.gateway.wire.codes import RequestCode
from tests.system.subcommands import CODES, SUB_COMMANDS

assert ropeway.gateway.processors.all, "it fills PROCESSORS"

CODES_HEAD = """\
## Request codes

Every code of RocketMQ 5.5.0, and those of 4.9.8 that it no longer has. A code that is
refused is answered with REQUEST_CODE_NOT_SUPPORTED and the reason.

| code | name | answer |
|---|---|---|"""
COMMANDS_HEAD = """\
## mqadmin

Every sub-command of mqadmin 5.5.0. Those that work were run, where the test says so,
against RocketMQ 5.5.0 too, with the same output but for addresses, times and sizes.

| sub-command | result | test |
|---|---|---|"""

Shown = Mapping[str, tuple[str, str]]
"""What came of a sub-command, and the test that tried it."""


def request_codes() -> str:
    """Each code with its name, and what comes of it."""
    ours = {code for code in RequestCode if code.name.startswith("ROPEWAY_")}
    rows = [
        f"| {int(code)} | {code.name} | {_answer(code)} |"
        for code in sorted(set(RequestCode) - ours)
    ]
    return "\n".join([CODES_HEAD, *rows])


def _answer(code: RequestCode) -> str:
    return "handled" if code in PROCESSORS else f"refused: {REASONS[code]}"


def sub_commands(shown: Shown) -> str:
    """Each sub-command with what came of it."""
    rows = [f"| `{name}` | {_result(name, shown)} |" for name in sorted(SUB_COMMANDS)]
    return "\n".join([COMMANDS_HEAD, *rows])


def _result(name: str, shown: Shown) -> str:
    if name not in shown:
        return "not tried | -"
    result, test = shown[name]
    if result == "works" and (reason := REASONS.get(CODES.get(name, -1))):
        result = f"refused: {reason}"
    return f"{result} | `{test}`"
